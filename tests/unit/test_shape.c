#include "tests/unit/unit.h"

#include <string.h>

static void
check_broadcast(Shape a, Shape b, Shape want)
{
	Shape back = b;

	assert_true(shape_broadcast(&back, &a));
	assert_true(shape_broadcast(&a, &b));
	assert_true(shape_eq(&a, &want));
	assert_true(shape_eq(&back, &want));
}

static void
broadcast(void **state)
{
	Shape a = SHAPE(2, 3), b = SHAPE(4);
	Shape none = { .rank = -1 };

	(void)state;
	check_broadcast(SHAPE(2, 3), SHAPE(3), SHAPE(2, 3));
	check_broadcast(SHAPE(2, 1), SHAPE(1, 3), SHAPE(2, 3));
	check_broadcast(SHAPE(5, 1, 3), shape_scalar(), SHAPE(5, 1, 3));
	check_broadcast(SHAPE(0, 3), SHAPE(1, 3), SHAPE(0, 3));
	/* an unknown extent against a real one must be it, against 1 stays */
	check_broadcast(SHAPE(-1, 3), SHAPE(2, 3), SHAPE(2, 3));
	check_broadcast(SHAPE(-1, 3), SHAPE(1, 3), SHAPE(-1, 3));
	check_broadcast(SHAPE(2, 3), none, none);
	assert_false(shape_broadcast(&a, &b));
	b = SHAPE(0, 3);
	assert_false(shape_broadcast(&a, &b));
}

static void
nelem(void **state)
{
	Shape s = SHAPE(2, 3, 4), none = { .rank = -1 };

	(void)state;
	assert_int_equal(shape_nelem(&s), 24);
	s = shape_scalar();
	assert_int_equal(shape_nelem(&s), 1);
	s = SHAPE(3, -1);
	assert_int_equal(shape_nelem(&s), -1);
	assert_int_equal(shape_nelem(&none), -1);
	s = SHAPE(INT64_C(1) << 31, INT64_C(1) << 31);
	assert_int_equal(shape_nelem(&s), INT64_C(1) << 62);
	s = SHAPE(INT64_C(1) << 31, (INT64_C(1) << 31) + 1);
	assert_int_equal(shape_nelem(&s), -1);
	s = SHAPE(INT64_MAX, INT64_MAX, 0);
	assert_int_equal(shape_nelem(&s), 0);
}

static void
text(void **state)
{
	char buf[64];
	Shape s = SHAPE(2, -1, 32), none = { .rank = -1 };
	Shape empty = shape_scalar();

	(void)state;
	assert_string_equal(shape_text(buf, sizeof buf, DT_F32, &s),
	                    "f32[2,?,32]");
	assert_string_equal(shape_text(buf, sizeof buf, DT_NONE, &empty),
	                    "?[]");
	assert_string_equal(shape_text(buf, sizeof buf, DT_BOOL, &none),
	                    "bool[*]");
	shape_text(buf, 8, DT_F32, &s);         /* cut, but ended */
	assert_true(strlen(buf) < 8);
}

static void
strides(void **state)
{
	Val v = { .shape = SHAPE(2, 3, 4), .laid_out = true };

	(void)state;
	shape_strides(&v.shape, v.stride);
	assert_int_equal(v.stride[0], 12);
	assert_int_equal(v.stride[1], 4);
	assert_int_equal(v.stride[2], 1);
	assert_true(val_contiguous(&v));
	v.stride[0] = 24;
	assert_false(val_contiguous(&v));
	v.shape.dim[0] = 1;             /* then it does not matter */
	assert_true(val_contiguous(&v));
	v.laid_out = false;
	assert_false(val_contiguous(&v));
}

static void
contents(void **state)
{
	Graph *g = graph_new("g");
	const int64_t big[2] = { INT64_MIN, INT64_MAX };
	const uint8_t bytes[3] = { 255, 0, 7 };
	const float floats[2] = { -1.5f, 1e30f };
	const uint16_t half[2] = { 0x3c00, 0xc000 };
	ValId a = val_const(g, "a", DT_I64, SHAPE(2), big);
	ValId b = val_const(g, "b", DT_U8, SHAPE(3), bytes);
	ValId c = val_const(g, "c", DT_F32, SHAPE(2), floats);
	ValId d = val_const(g, "d", DT_F16, SHAPE(2), half);
	ValId e = val_const(g, "e", DT_BOOL, SHAPE(3), bytes);

	(void)state;
	assert_true(val_int(&g->val[a], 0) == INT64_MIN);
	assert_true(val_int(&g->val[a], 1) == INT64_MAX);
	assert_int_equal(val_int(&g->val[b], 0), 255);
	assert_int_equal(val_int(&g->val[c], 0), -1);
	assert_true(val_int(&g->val[c], 1) == INT64_MAX);
	assert_true(val_float(&g->val[c], 0) == -1.5);
	assert_true(val_float(&g->val[d], 0) == 1);
	assert_true(val_float(&g->val[d], 1) == -2);
	assert_int_equal(val_int(&g->val[e], 0), 1);
	graph_free(g);
}

static void
splat(void **state)
{
	Graph *g = graph_new("g");
	const float same[3] = { 2, 2, 2 }, other[3] = { 2, 2, 3 };
	ValId a = val_const(g, "a", DT_F32, SHAPE(3), same);
	ValId b = val_const(g, "b", DT_F32, SHAPE(3), other);
	ValId c = val_scalar(g, DT_I32, 5);
	ValId d = val_new(g, V_CONST, "d", DT_F32, SHAPE(3));
	ValId e = val_const(g, "e", DT_F32, SHAPE(0), same);
	double x = 0;

	(void)state;
	assert_true(val_splat(g, a, &x));
	assert_true(x == 2);
	assert_false(val_splat(g, b, &x));
	assert_true(val_splat(g, c, &x));
	assert_true(x == 5);
	assert_false(val_splat(g, d, &x));      /* no contents */
	assert_false(val_splat(g, e, &x));      /* no elements */
	assert_false(val_splat(g, 0, &x));
	graph_free(g);
}

int
test_shape(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broadcast), cmocka_unit_test(nelem),
		cmocka_unit_test(text), cmocka_unit_test(strides),
		cmocka_unit_test(contents), cmocka_unit_test(splat),
	};

	return cmocka_run_group_tests_name("shape", tests, NULL, NULL);
}
