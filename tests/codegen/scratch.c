/* The scratch of kernels: what a step lacks has no place in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/cpu/conv_tile.h"
#include "codegen/cpu/cpu.h"
#include "codegen/cuda/cuda.h"
#include "ir/text/text.h"

/* Bytes for so many threads of the last classifier or convolution of this
 * graph. */
static int64_t
scratch_of(const char *body, int threads)
{
	Diag *diag = diag_new("scratch", stderr);
	char text[1024];
	int64_t bytes = -1;
	Graph *g;

	snprintf(text, sizeof text, "graph @f {\n%s}\n", body);
	g = text_parse("scratch.ck", text, strlen(text), diag);
	assert_non_null(g);
	for (NodeId i = 1; i < g->nnode; i++)
		if (g->node[i].op == OP_CLASSIFIER
		    || g->node[i].op == OP_CONV
		    || g->node[i].op == OP_CONV_DX)
			bytes = target_cpu.workspace(g, &g->node[i], threads);
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
	                  "\t%l, %dx, %dw, %db = classifier %x, %w, %t, %b\n", 1);
	without = scratch_of("\tinput %x: bf16[600,8]\n"
	                     "\tinput %w: bf16[500,8]\n"
	                     "\tinput %b: bf16[500]\n"
	                     "\tinput %t: i64[600]\n"
	                     "\t%l, %dx, _ = classifier %x, %w, %t, %b\n", 1);
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
	                       "\t%l, %dx, %dw = classifier %x, %w, %t\n", 1)
	            <= 50257 * (128 * 4 + 1024 * 2) + 3 * 384 * 384 * 4);
}

/* On a GPU rows of a chunk are an extent that tensor cores compute in tiles. */
static void
test_cuda_chunks(void **state)
{
	static const int64_t rows[] = { 30000, 32768, 65536, 1 << 20 };

	(void)state;
	assert_int_equal(cuda_classifier_rows(32768, 50257, true), 2560);
	assert_int_equal(cuda_classifier_rows(100, 50257, true), 100);
	for (int i = 0; i < 4; i++) {
		int64_t half = cuda_classifier_rows(rows[i], 50257, true);
		int64_t f32 = cuda_classifier_rows(rows[i], 32000, false);

		assert_int_equal(half % 128, 0);
		assert_int_equal(f32 % 128, 0);
		/* 256 MiB, and a sixteenth */
		assert_in_range(half * 50257 * 2, 1, 272 << 20);
		assert_in_range(f32 * 32000 * 4, 1, 272 << 20);
	}
}

/* Products of bf16 by the processor's units: sums of all threads take less than
 * the float32 copies without units. */
static void
test_conv_sums(void **state)
{
	int64_t bf16, f16;

	(void)state;
	bf16 = scratch_of("\tinput %dy: bf16[2,64,512,512]\n"
	                  "\tinput %w: bf16[64,64,3,3]\n"
	                  "\t%dx = conv_dx %dy, %w {stride=[1,1], "
	                  "dilation=[1,1], begin=[1,1], end=[1,1], "
	                  "out=[512,512]}\n", 16);
	f16 = scratch_of("\tinput %dy: f16[2,64,512,512]\n"
	                 "\tinput %w: f16[64,64,3,3]\n"
	                 "\t%dx = conv_dx %dy, %w {stride=[1,1], "
	                 "dilation=[1,1], begin=[1,1], end=[1,1], "
	                 "out=[512,512]}\n", 16);
	assert_true(f16 > 0 && bf16 <= f16);
	assert_in_range(scratch_of("\tinput %x: bf16[16,16,64,64]\n"
	                           "\tinput %w: bf16[512,16,1,1]\n"
	                           "\t%y = conv %x, %w {stride=[1,1], "
	                           "dilation=[1,1], begin=[0,0], "
	                           "end=[0,0]}\n", 16),
	                1, 40 << 20);
}

/* Bytes of scratch that a call of the last node of this graph brings. */
static int64_t
library_scratch(const char *body)
{
	Diag *diag = diag_new("scratch", stderr);
	char text[1024];
	Graph *g;
	struct conv_blocked b;

	snprintf(text, sizeof text, "graph @f {\n%s}\n", body);
	g = text_parse("scratch.ck", text, strlen(text), diag);
	assert_non_null(g);
	b = conv_blocked(g, &g->node[g->nnode - 1]);
	assert_true(b.fits);
	graph_free(g);
	diag_free(diag);
	return b.scratch * 4;
}

/* Numbers that oneDNN 2.6 asks for with AVX512-BF16. */
static void
test_library_scratch(void **state)
{
	(void)state;
	assert_true(library_scratch("\tinput %x: bf16[1,128,19,19]\n"
	                            "\tinput %w: bf16[112,128,1,1]\n"
	                            "\t%y = conv %x, %w {stride=[1,1], "
	                            "dilation=[1,1], begin=[0,0], "
	                            "end=[0,0]}\n") >= 163200);
	assert_true(library_scratch("\tinput %x: bf16[1,64,113,5]\n"
	                            "\tinput %dy: bf16[1,64,56,2]\n"
	                            "\t%dw = conv_dw %x, %dy {stride=[2,2], "
	                            "dilation=[1,1], begin=[0,0], "
	                            "end=[0,0], kernel=[3,3]}\n")
	            >= 188164);
	assert_true(library_scratch("\tinput %x: bf16[4,128,11,1]\n"
	                            "\tinput %dy: bf16[4,64,4,1]\n"
	                            "\t%dw = conv_dw %x, %dy {stride=[2,2], "
	                            "dilation=[1,1], begin=[0,0], "
	                            "end=[0,0], kernel=[5,1]}\n") >= 23812);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classifier_gradients),
		cmocka_unit_test(test_classifier_size),
		cmocka_unit_test(test_cuda_chunks),
		cmocka_unit_test(test_conv_sums),
		cmocka_unit_test(test_library_scratch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
