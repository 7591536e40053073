/* Device profiles: reading, the roofline, fitting to measurements. */
#include "tests/memory/test_memory.h"

#include "passes/cost/cost.h"

#include <math.h>
#include <string.h>

static bool
parse(struct device_profile *d, const char *text, Arena *arena)
{
	return device_parse(d, text, strlen(text), arena);
}

static void
roofline(void **state)
{
	struct device_profile d = { .product_flops = 100,
	                            .product_flops16 = 400,
	                            .vector_flops = 10, .bandwidth = 50,
	                            .launch = 0.5 };
	const struct cost product = { .flops = 200, .product = 200,
	                              .bytes = 50 };
	const struct cost vector = { .flops = 20, .bytes = 50 };
	const struct cost copy = { .bytes = 200 }, nothing = { 0 };

	(void)state;
	assert_true(device_seconds(&d, OP_MATMUL, false, &product) == 2.5);
	assert_true(device_seconds(&d, OP_MATMUL, true, &product) == 1.5);
	assert_true(device_seconds(&d, OP_EXP, false, &vector) == 2.5);
	assert_true(device_seconds(&d, OP_COPY, false, &copy) == 4.5);
	assert_true(device_seconds(&d, OP_COPY, false, &nothing) == 0);
	/* memory first, then the product */
	d.serial = 1;
	assert_true(device_seconds(&d, OP_MATMUL, false, &product) == 3.5);
	assert_true(device_seconds(&d, OP_EXP, false, &vector) == 2.5);
	d.scale[OP_EXP] = 2;
	assert_true(device_seconds(&d, OP_EXP, false, &vector) == 4.5);
}

/* What is reached of the rates.  A product of 4 x 10 by 10 x 5 takes as long as
 * one of 15 elements along k where its start takes 5. */
static void
shares(void **state)
{
	struct device_profile d = { .product_flops = 100,
	                            .product_flops16 = 400,
	                            .vector_flops = 10, .bandwidth = 50,
	                            .product_share = 0.5, .vector_share = 0.25,
	                            .memory_share = 0.8 };
	const struct cost product = { .flops = 400, .product = 400,
	                              .started = 20 };
	const struct cost fused = { .flops = 420, .product = 400 };
	const struct cost vector = { .flops = 20 }, copy = { .bytes = 200 };

	(void)state;
	assert_true(device_seconds(&d, OP_MATMUL, false, &product) == 8);
	assert_true(device_seconds(&d, OP_MATMUL, true, &product) == 2);
	assert_true(device_seconds(&d, OP_EXP, false, &vector) == 8);
	assert_true(device_seconds(&d, OP_COPY, false, &copy) == 5);
	/* its own kernel reaches the rate of vectors */
	assert_true(device_seconds(&d, OP_ATTENTION, false, &fused) == 10);
	d.product_start = 5;
	assert_true(device_seconds(&d, OP_MATMUL, false, &product) == 12);
}

/* A message of each member but one, and bytes over what is narrower: the link,
 * or the network adapters of the members in a node together. */
static void
rings_over_nodes(void **state)
{
	struct device_profile d = { .link = 450, .link_latency = 1, .node = 8,
	                            .net = 50, .net_latency = 3 };
	static const struct { struct ring ring; double sec; } want[] = {
		{ { 8, 1 }, 7 * 1 + 900 / 450. },       /* a node */
		{ { 4, 2 }, 3 * 1 + 900 / 450. },
		{ { 4, 1 }, 3 * 1 + 900 / 450. },       /* half of one */
		{ { 8, 8 }, 7 * 3 + 900 / 50. },        /* one of each node */
		{ { 2, 16 }, 1 * 3 + 900 / 50. },
		{ { 8, 2 }, 7 * 3 + 900 / 200. },       /* four of each */
		{ { 8, 3 }, 7 * 3 + 900 / 100. },       /* two or three */
		{ { 6, 1 }, 5 * 3 + 900 / 100. },       /* two and four */
		{ { 16, 1 }, 15 * 3 + 900 / 400. },
		{ { 1, 1 }, 900 / 450. },
	};
	Arena *arena = arena_new();
	Diag *diag = diag_new("t", stderr);
	const struct device_profile *h100 = device_find("H100", diag, arena);

	(void)state;
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		assert_float_equal(device_ring_seconds(&d, want[i].ring, 900),
		                   want[i].sec, 1e-12);
	/* the network is no faster than the link, no network no border */
	d.net = 100;
	assert_float_equal(device_ring_seconds(&d, (struct ring){ 16, 1 }, 900),
	                   15 * 3 + 900 / 450., 1e-12);
	d.node = 0;
	assert_float_equal(device_ring_seconds(&d, (struct ring){ 8, 8 }, 900),
	                   7 * 1 + 900 / 450., 1e-12);
	/* an all-reduce of 8 GB over eight nodes: 2 * 7/8 of them sent */
	assert_float_equal(device_ring_seconds(h100, (struct ring){ 8, 8 },
	                                       14e9),
	                   7 * h100->net_latency + 14e9 / 50e9, 1e-12);
	diag_free(diag);
	arena_free(arena);
}

static void
profiles_by_name(void **state)
{
	Arena *arena = arena_new();
	Diag *diag = diag_new("t", stderr);
	const struct device_profile *d = device_find("A100-80GB", diag, arena);

	(void)state;
	assert_non_null(d);
	assert_true(d->product_flops16 == 312e12);
	assert_true(d->memory == 80e9);
	assert_true(device_find("H100", diag, arena)->product_flops16
	            == 989e12);
	assert_true(device_find("H200", diag, arena)->bandwidth == 4.8e12);
	/* as nvidia-smi and people write them */
	assert_ptr_equal(device_find("NVIDIA A100-SXM4-80GB", diag, arena), d);
	assert_ptr_equal(device_find("a100 80gb", diag, arena), d);
	assert_ptr_equal(device_find("H100-80GB", diag, arena),
	                 device_find("NVIDIA H100 80GB HBM3", diag, arena));
	assert_string_equal(device_find("NVIDIA GeForce RTX 4090", diag,
	                                arena)->name, "RTX-4090");
	assert_string_equal(device_find("NVIDIA H100 PCIe", diag, arena)->name,
	                    "H100-PCIe");
	/* which of two is not said */
	assert_null(device_known("A100"));
	assert_null(device_known("H1000"));
	assert_null(device_known("NVIDIA"));
	assert_null(device_known(""));
	diag_free(diag);
	arena_free(arena);
}

static void
files_read_back(void **state)
{
	Arena *arena = arena_new();
	struct device_profile a = { .name = "mine", .product_flops = 1e12,
	                            .product_flops16 = 2e12, .vector_flops = 3e10,
	                            .bandwidth = 4e9, .launch = 5e-6, .memory = 6e9,
	                            .serial = 1 }, b;

	(void)state;
	a.scale[OP_CONV] = 1.25;
	a.scale[OP_ADAMW] = 0.5;
	assert_true(parse(&b, device_json(&a, arena), arena));
	assert_string_equal(b.name, "mine");
	assert_true(b.product_flops16 == 2e12 && b.bandwidth == 4e9
	            && b.launch == 5e-6 && b.memory == 6e9 && b.serial == 1);
	for (Op op = OP_NONE; op < OP_COUNT; op++)
		assert_true(a.scale[op] == b.scale[op]);
	arena_free(arena);
}

static void
faulty_files(void **state)
{
	static const char *const text[] = {
		"", "[]", "{", "{}", "{\"name\": \"x\"}",
		"{\"name\": \"x\", \"product_flops\": 1, "
		"\"vector_flops\": 1}",
		"{\"name\": \"x\", \"product_flops\": -1, "
		"\"vector_flops\": 1, \"bandwidth\": 1}",
		"{\"name\": \"x\", \"product_flops\": 1, "
		"\"vector_flops\": 0, \"bandwidth\": 1}",
		"{\"name\": \"x\\\"\", \"product_flops\": 1, "
		"\"vector_flops\": 1, \"bandwidth\": 1}",
		"{\"name\": \"x\", \"product_flops\": 1, "
		"\"vector_flops\": 1, \"bandwidth\": 1} x",
		"{\"name\": \"x\", \"product_flops\": 1, \"vector_flops\": 1, "
		"\"bandwidth\": 1, \"scale\": {\"conv\": -2}}",
	};
	Arena *arena = arena_new();
	struct device_profile d;

	(void)state;
	for (size_t i = 0; i < sizeof text / sizeof *text; i++)
		if (parse(&d, text[i], arena))
			fail_msg("accepted: %s", text[i]);
	arena_free(arena);
}

/* What ckrun --profile writes: equal work takes the mean of its times. */
static void
measurements(void **state)
{
	static const char text[] =
		"{\"format\": \"ckc-profile\", \"name\": \"measured\", "
		"\"peak_flops\": {\"f32\": 1e9}, \"bandwidth\": 1e8, "
		"\"ops\": [\n"
		"{\"op\": \"matmul\", \"seconds\": 20, \"least\": 3, "
		"\"flops\": 8, \"bytes\": 4},\n"
		"{\"op\": \"matmul\", \"seconds\": 14, \"least\": 5, "
		"\"flops\": 8, \"bytes\": 4},\n"
		"{\"op\": \"matmul\", \"least\": 9, \"flops\": 8, "
		"\"bytes\": 5},\n"
		"{\"op\": \"all_reduce\", \"seconds\": 90, \"least\": 3, "
		"\"sent_bytes\": 8},\n"
		"{\"op\": \"a later one\", \"least\": 1, \"flops\": 8, "
		"\"bytes\": 5}]}";
	Arena *arena = arena_new();
	struct device_profile d;

	(void)state;
	assert_true(parse(&d, text, arena));
	assert_int_equal(d.nmeasured, 2);
	assert_true(d.product_flops == 1e9 && d.bandwidth == 1e8);
	assert_true(d.spread == 34. / 17);
	assert_true(device_measured(&d, OP_MATMUL, 8, 4) == 4);
	assert_true(device_measured(&d, OP_MATMUL, 8, 5) == 9);
	assert_true(device_measured(&d, OP_MATMUL, 9, 5) < 0);
	assert_true(device_measured(&d, OP_CONV, 8, 4) < 0);
	arena_free(arena);
}

/* Measurements made up from known rates give them back. */
static void
fit(void **state)
{
	struct plan_step step[] = {
		{ .op = "matmul", .flops = 4e9, .product = 4e9, .bytes = 1e7 },
		{ .op = "matmul", .flops = 1e9, .product = 1e9, .bytes = 2e7 },
		{ .op = "loop", .flops = 1e6, .bytes = 8e7 },
		{ .op = "loop", .flops = 2e9, .bytes = 1e7 },
		{ .op = "adamw", .flops = 1e6, .bytes = 1e8 },
		{ .op = "loop", .flops = 1, .bytes = 4 },
	};
	const int n = sizeof step / sizeof *step;
	struct measured m[sizeof step / sizeof *step];
	const Plan plan = { .step = step, .nstep = n };
	struct device_profile d, from = { .measured = m, .nmeasured = n };
	/* rates: products 1e11, vectors 2e10, memory 1e10 */
	const double sec[] = { 0.041, 0.012, 0.008, 0.1, 0.02, 1e-6 };

	(void)state;
	/* sorted by op, then by work */
	for (int i = 0; i < n; i++)
		m[i] = (struct measured){ op_find(step[i].op), step[i].flops,
		                          step[i].bytes, sec[i] };
	for (int i = 0; i < n; i++)
		for (int k = i + 1; k < n; k++)
			if (m[k].op < m[i].op
			    || (m[k].op == m[i].op
			        && m[k].flops < m[i].flops)) {
				struct measured t = m[i];

				m[i] = m[k];
				m[k] = t;
			}
	assert_true(device_fit(&d, &plan, &from));
	assert_true(fabs(d.product_flops / 1e11 - 1) < 1e-3);
	assert_true(fabs(d.vector_flops / 2e10 - 1) < 1e-3);
	assert_true(fabs(d.bandwidth / 1e10 - 1) < 1e-3);
	assert_true(fabs(d.scale[OP_MATMUL] - 1) < 1e-3);
	assert_true(fabs(d.scale[OP_ADAMW] - 2) < 2e-3);
	assert_true(d.scale[OP_CONV] == 0);
	/* nothing measured: no profile */
	from.nmeasured = 0;
	assert_false(device_fit(&d, &plan, &from));
}

/* Those of 16 bits are told apart from the others. */
static void
fit_16_bits(void **state)
{
	struct plan_tensor tensor[] = { { .dt = DT_F32 }, { .dt = DT_BF16 } };
	int64_t wide = 0, half = 1;
	struct plan_step step[] = {
		{ .op = "matmul", .flops = 2e9, .product = 2e9, .bytes = 1e7,
		  .nread = 1, .read = &wide },
		{ .op = "matmul", .flops = 4e9, .product = 4e9, .bytes = 1e7,
		  .nread = 1, .read = &half },
		{ .op = "attention", .flops = 1e9, .product = 1e9, .bytes = 1e7,
		  .nread = 1, .read = &half },
	};
	const Plan plan = { .step = step, .nstep = 3, .tensor = tensor,
		.ntensor = 2 };
	/* products 1e11 and 2e11, memory 1e10; attention takes three times */
	struct measured m[] = {
		{ OP_MATMUL, 2e9, 1e7, 0.9 }, { OP_MATMUL, 4e9, 1e7, 0.021 },
		{ OP_ATTENTION, 1e9, 1e7, 0.018 },
	};
	const struct device_profile from = { .measured = m, .nmeasured = 3 };
	struct device_profile d = { .product_flops = 1e11,
		.product_flops16 = 1e11, .vector_flops = 1e10,
		.bandwidth = 1e10, .serial = 1,
		.scale = { [OP_MATMUL] = 5, [OP_ATTENTION] = 7 } };
	struct cost c = { .flops = 1e9, .product = 1e9, .bytes = 1e7 };

	(void)state;
	if (OP_ATTENTION < OP_MATMUL) {
		struct measured t = m[2];

		m[2] = m[1];
		m[1] = m[0];
		m[0] = t;
	}
	assert_true(device_fit16(&d, &plan, &from));
	assert_true(fabs(d.product_flops16 / 2e11 - 1) < 1e-3);
	assert_true(d.product_flops == 1e11 && d.scale[OP_ATTENTION] == 7);
	assert_true(fabs(d.scale16[OP_MATMUL] - 1) < 1e-3);
	assert_true(fabs(d.scale16[OP_ATTENTION] - 3) < 1e-2);
	assert_true(fabs(device_seconds(&d, OP_ATTENTION, true, &c) / 0.018 - 1)
	            < 1e-3);
	assert_true(fabs(device_seconds(&d, OP_ATTENTION, false, &c)
	                 / (7 * 0.011) - 1) < 1e-3);
}

int
test_device(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roofline), cmocka_unit_test(shares),
		cmocka_unit_test(rings_over_nodes),
		cmocka_unit_test(profiles_by_name),
		cmocka_unit_test(files_read_back),
		cmocka_unit_test(faulty_files), cmocka_unit_test(measurements),
		cmocka_unit_test(fit), cmocka_unit_test(fit_16_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
