/* The report of --check. */
#include <math.h>
#include <stdio.h>

#include "runtime/base/err.h"
#include "runtime/ckrun/checked.h"

void
checked_add(struct ckr_checked *n, const struct ckr_checked *step)
{
	n->compared += step->compared;
	n->again += step->again;
	n->alone += step->alone;
	n->rounded = step->rounded;
	n->differ = fmax(n->differ, step->differ);
	n->median = fmax(n->median, step->median);
	if (step->largest >= n->largest) {
		n->largest = step->largest;
		n->where = step->where;
	}
}

void
checked_print(const struct ckr_checked *n)
{
	char name[NAME_TEXT];

	printf("check: %llu tensors compared, %llu of them computed again, all "
	       "bits equal", (unsigned long long)n->compared,
	       (unsigned long long)n->again);
	if (n->alone)
		printf("; %llu not compared, which keep-everything does not "
		       "have", (unsigned long long)n->alone);
	putchar('\n');
	if (!n->rounded)
		return;
	printf("check: that was forward; %llu values are kept in 16 bits, and "
	       "gradients differ by %.2e of their norm (of a parameter's: "
	       "median %.2e, largest %.2e, %s)\n",
	       (unsigned long long)n->rounded, n->differ, n->median,
	       n->largest, err_name(name, sizeof(name),
	                            n->where ? n->where : "of none"));
}
