/* threads MODEL.so OUT: open in one thread, train, evaluate, save and close in
 * others: a context is used by one thread at a time, not by one alone. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ckr.h"

struct task {
	ckr_ctx *m;
	const char *so, *out;
	ckr_status s;
};

static void *
open_model(void *arg)
{
	struct task *t = arg;
	struct ckr_options o = { .seed = 3 };

	t->s = ckr_open(&t->m, t->so, &o);
	return NULL;
}

/* Inputs are zeros: in range whatever they mean. */
static ckr_status
set_inputs(ckr_ctx *m)
{
	struct ckr_info info;
	ckr_status s = CKR_OK;

	for (size_t i = 0; !s && !ckr_tensor(m, i, &info); i++) {
		char *data;

		if (strcmp(info.kind, "input"))
			continue;
		data = calloc(1, info.nbytes + 1);
		s = ckr_set(m, info.name, data, info.nbytes);
		free(data);
	}
	return s;
}

static void *
train(void *arg)
{
	struct task *t = arg;
	struct ckr_hyper h = ckr_model_hyper(t->m);
	double loss = NAN;

	t->s = set_inputs(t->m);
	for (int i = 0; t->s == CKR_OK && i < 3; i++)
		t->s = ckr_step(t->m, &h, &loss);
	printf("loss %g\n", loss);
	return NULL;
}

static void *
evaluate(void *arg)
{
	struct task *t = arg;
	double loss = NAN;

	t->s = ckr_eval(t->m, &loss);
	printf("evaluated: %g\n", loss);
	return NULL;
}

static void *
save(void *arg)
{
	struct task *t = arg;

	t->s = ckr_save(t->m, t->out);
	return NULL;
}

static void *
close_model(void *arg)
{
	struct task *t = arg;

	ckr_close(t->m);
	return NULL;
}

static int
in_a_thread(struct task *t, void *(*f)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, f, t) || pthread_join(thread, NULL))
		return 0;
	if (t->s != CKR_OK)
		fprintf(stderr, "%s\n", ckr_error(t->m));
	return t->s == CKR_OK;
}

int
main(int argc, char **argv)
{
	struct task t = { .so = argv[1], .out = argc == 3 ? argv[2] : "" };

	if (argc != 3)
		return 2;
	return !(in_a_thread(&t, open_model) && in_a_thread(&t, train)
	         && in_a_thread(&t, evaluate) && in_a_thread(&t, save)
	         && in_a_thread(&t, close_model));
}
