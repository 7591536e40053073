/* Which tables of transfers a library may have: those of one message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/library/program.h"

enum { PIECES = 3 };

/* Three gathers from pieces of two ranks, then an op. */
struct tables {
	struct ckr_placement split;
	struct ckr_tensor tensor[2 * PIECES];
	struct ckr_comm comm[PIECES];
	struct ckr_instr instr[PIECES + 1];
	int32_t arg[2 * PIECES];
	struct ckr_library lib;
};

static void
fill(struct tables *t)
{
	*t = (struct tables){ .split = { .replication = 1, .nsegment = 1,
		.segment = { 4 } } };
	for (int i = 0; i < 2 * PIECES; i++) {
		t->arg[i] = i;
		t->tensor[i] = (struct ckr_tensor){ .name = "t",
			.dtype = CKR_F32, .kind = CKR_OTHER, .rank = 1,
			.dim = { i % 2 ? 4 : 2 }, .stride = { 1 },
			.offset = 64 * (uint64_t)i, .param = -1, .ready = -1 };
	}
	for (uint32_t i = 0; i < PIECES; i++) {
		t->comm[i] = (struct ckr_comm){ .kind = CKR_ALL_GATHER,
			.axis = CKR_TP, .placement = &t->split, .end = PIECES,
			.joined = i + 1 < PIECES };
		t->instr[i] = (struct ckr_instr){ .op = "all_gather",
			.origin = "", .arg0 = 2 * i, .narg = 2,
			.comm = &t->comm[i] };
	}
	t->instr[PIECES] = (struct ckr_instr){ .op = "op", .origin = "" };
	t->lib = (struct ckr_library){ .abi = CKR_ABI_VERSION, .ranks = 2,
		.program = { { .instr = t->instr, .ninstr = PIECES + 1,
		.arg = t->arg, .tensor = t->tensor, .ntensor = 2 * PIECES,
		.arena_bytes = 1024, .loss = -1 } } };
}

static void
test_messages(void **unused)
{
	struct tables t;

	(void)unused;
	fill(&t);
	assert_true(program_tables_are_sane(&t.lib));
	t.comm[1].end = 2;
	assert_true(program_tables_are_sane(&t.lib));
	/* it would be waited for before it is sent */
	t.comm[0].end = 1;
	assert_false(program_tables_are_sane(&t.lib));
	fill(&t);
	t.comm[1].axis = CKR_DP;
	t.lib.replicas = 2;
	assert_false(program_tables_are_sane(&t.lib));
	t.comm[0].joined = t.comm[1].joined = 0;
	assert_true(program_tables_are_sane(&t.lib));
	/* with what runs once for all micro-batches */
	fill(&t);
	t.instr[0].phase = t.instr[1].phase = CKR_BACKWARD;
	t.instr[2].phase = t.instr[3].phase = CKR_UPDATE;
	assert_false(program_tables_are_sane(&t.lib));
	t.instr[0].phase = t.instr[1].phase = CKR_UPDATE;
	assert_true(program_tables_are_sane(&t.lib));
	/* with nothing, with what is no transfer */
	fill(&t);
	t.comm[2].joined = 1;
	assert_false(program_tables_are_sane(&t.lib));
	t.lib.program[0].ninstr = PIECES;
	t.comm[0].end = t.comm[1].end = t.comm[2].end = PIECES - 1;
	assert_false(program_tables_are_sane(&t.lib));
	t.comm[2].joined = 0;
	assert_true(program_tables_are_sane(&t.lib));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
