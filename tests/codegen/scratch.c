/* The scratch of kernels: what a step lacks has no place in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/cpu/cpu.h"
#include "ir/text/text.h"

/* Bytes for one thread of the last node of this graph. */
static int64_t
scratch_of(const char *body)
{
	Diag *diag = diag_new("scratch", stderr);
	char text[1024];
	int64_t bytes = -1;
	Graph *g;

	snprintf(text, sizeof text, "graph @f {\n%s}\n", body);
	g = text_parse("scratch.ck", text, strlen(text), diag);
	assert_non_null(g);
	for (NodeId i = 1; i < g->nnode; i++)
		if (g->node[i].op == OP_CLASSIFIER)
			bytes = target_cpu.workspace(g, &g->node[i], 1);
	graph_free(g);
	diag_free(diag);
	return bytes;
}

/* Of 16-bit floats over many rows the sum of dw and that of dbias. */
static void
test_classifier_gradients(void **state)
{
	int64_t with, without;

	(void)state;
	with = scratch_of("\tinput %x: bf16[600,8]\n"
	                  "\tinput %w: bf16[500,8]\n"
	                  "\tinput %b: bf16[500]\n"
	                  "\tinput %t: i64[600]\n"
	                  "\t%l, %dx, %dw, %db = classifier %x, %w, %t, %b\n");
	without = scratch_of("\tinput %x: bf16[600,8]\n"
	                     "\tinput %w: bf16[500,8]\n"
	                     "\tinput %b: bf16[500]\n"
	                     "\tinput %t: i64[600]\n"
	                     "\t%l, %dx, _ = classifier %x, %w, %t, %b\n");
	assert_true(without > 0);
	assert_true(without <= with - 500 * 8 * 4 - 500 * 4 + 64);
}

/* GPT-2's, batch 4 x 256: logits of 128 rows, adjoints of all in 16 bits,
 * three tiles of 384 x 384. */
static void
test_classifier_size(void **state)
{
	(void)state;
	assert_true(scratch_of("\tinput %x: bf16[1024,768]\n"
	                       "\tinput %w: bf16[50257,768]\n"
	                       "\tinput %t: i64[1024]\n"
	                       "\t%l, %dx, %dw = classifier %x, %w, %t\n")
	            <= 50257 * (128 * 4 + 1024 * 2) + 3 * 384 * 384 * 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classifier_gradients),
		cmocka_unit_test(test_classifier_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
