/* Views as strides: numpy's rule for reshaping without a copy. */
#include "ir/view.h"

/* Groups of axes with equal products are matched; within a group the old axes
 * must be dense relative to each other.  Axes of one element say nothing. */
bool
view_reshape(const Shape *from, const int64_t *stride, const Shape *to,
             int64_t out[MAX_RANK])
{
	Shape old = { .rank = 0 };
	int64_t step[MAX_RANK];
	int i = 0, k = 0;

	if (shape_nelem(from) == 0) {
		shape_strides(to, out);
		return true;
	}
	for (int d = 0; d < from->rank; d++)
		if (from->dim[d] != 1) {
			old.dim[old.rank] = from->dim[d];
			step[old.rank++] = stride[d];
		}
	while (k < to->rank) {
		if (to->dim[k] == 1) {
			out[k++] = 1;
			continue;
		}
		int i0 = i, k0 = k;
		if (i == old.rank)
			return false;
		int64_t a = old.dim[i++], b = to->dim[k++];
		while (a != b)
			if (a < b ? i == old.rank : k == to->rank)
				return false;
			else if (!(a < b ? mul_ok(a, old.dim[i++], &a)
			                 : mul_ok(b, to->dim[k++], &b)))
				return false;
		for (int d = i0; d + 1 < i; d++)
			if (step[d] != step[d + 1] * old.dim[d + 1])
				return false;
		int64_t s = step[i - 1];
		for (int d = k; d-- > k0; s *= to->dim[d])
			out[d] = s;
	}
	return true;
}
