/* eval MODEL.so: ckr_eval leaves every parameter and state as it is and says
 * the same twice; a step then changes some.  Moving averages, if the library
 * keeps any, can be used in place of parameters and leave no trace.  Inputs are
 * zeros.  Prints the loss. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ckr.h"

enum { MOST = 256 };

struct copies {
	int n;
	struct ckr_info info[MOST];
	char *data[MOST];
};

static bool
outlives_step(const struct ckr_info *i)
{
	return !strcmp(i->kind, "param") || !strcmp(i->kind, "buffer")
	       || !strcmp(i->kind, "state");
}

static bool
copy(ckr_ctx *c, struct copies *k)
{
	struct ckr_info info;

	for (size_t i = 0; ckr_tensor(c, i, &info) == CKR_OK; i++) {
		if (!outlives_step(&info) || k->n == MOST)
			continue;
		k->info[k->n] = info;
		k->data[k->n] = malloc(info.nbytes + 1);
		if (!k->data[k->n]
		    || ckr_get(c, info.name, k->data[k->n], info.nbytes))
			return false;
		k->n++;
	}
	return true;
}

static int
changed(ckr_ctx *c, const struct copies *k)
{
	int n = 0;

	for (int i = 0; i < k->n; i++) {
		size_t size = k->info[i].nbytes;
		char *now = malloc(size + 1);

		if (!now || ckr_get(c, k->info[i].name, now, size)
		    || memcmp(now, k->data[i], size) != 0)
			n++;
		free(now);
	}
	return n;
}

static bool
clear_inputs(ckr_ctx *c)
{
	struct ckr_info info;
	void *p;

	for (size_t i = 0; ckr_tensor(c, i, &info) == CKR_OK; i++)
		if (!strcmp(info.kind, "input")) {
			if (ckr_input(c, info.name, &p))
				return false;
			memset(p, 0, info.nbytes);
		}
	return true;
}

static void
drop(struct copies *k)
{
	for (int i = 0; i < k->n; i++)
		free(k->data[i]);
	k->n = 0;
}

/* While averages are in use nothing steps, saves or sets; c has made a step. */
static bool
averages_are_used(ckr_ctx *c)
{
	struct copies k = { .n = 0 };
	bool ok;

	if (!ckr_uses_hyper(c, "ema_decay"))
		return ckr_use_ema(c, true) == CKR_EUNSUPPORTED;
	ok = copy(c, &k) && ckr_use_ema(c, true) == CKR_OK && changed(c, &k)
	     && ckr_use_ema(c, true) == CKR_OK
	     && ckr_step(c, NULL, NULL) == CKR_EARG
	     && ckr_begin_step(c, NULL) == CKR_EARG
	     && ckr_check(c, NULL, NULL, NULL) == CKR_EARG
	     && ckr_save(c, "averages.st") == CKR_EARG
	     && ckr_resume(c, "averages.st") == CKR_EARG
	     && ckr_set(c, k.info[0].name, k.data[0], k.info[0].nbytes)
	        == CKR_EARG
	     && ckr_eval(c, NULL) == CKR_OK
	     && ckr_use_ema(c, false) == CKR_OK && !changed(c, &k)
	     && ckr_save(c, "averages.st") == CKR_OK;
	drop(&k);
	return ok;
}

int
main(int argc, char **argv)
{
	struct copies k = { .n = 0 };
	double a = 0, b = 0;
	ckr_ctx *c = NULL;
	bool ok;

	ok = argc == 2 && ckr_open(&c, argv[1], NULL) == CKR_OK
	     && clear_inputs(c) && ckr_use_ema(c, true) != CKR_OK
	     && copy(c, &k)
	     && ckr_eval(c, &a) == CKR_OK && ckr_eval(c, &b) == CKR_OK;
	if (!ok) {
		fprintf(stderr, "failed: %s\n", ckr_error(c));
	} else if (changed(c, &k) || memcmp(&a, &b, sizeof a) != 0) {
		fprintf(stderr, "eval changed %d of %d tensors, loss %.9g, "
		        "then %.9g\n", changed(c, &k), k.n, a, b);
		ok = false;
	} else if (ckr_step(c, NULL, NULL) || !changed(c, &k)) {
		fprintf(stderr, "the step changed nothing: %s\n",
		        ckr_error(c));
		ok = false;
	} else if (ckr_step(c, NULL, NULL) || !averages_are_used(c)) {
		fprintf(stderr, "averages in use: %s\n", ckr_error(c));
		ok = false;
	}
	printf("%.9g\n", a);
	drop(&k);
	ckr_close(c);
	return ok ? 0 : 1;
}
