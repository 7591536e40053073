/* Cases of products of rows with the matrices of their experts. */
#include "codegen/machine.h"
#include "ir/target.h"
#include "tests/codegen/harness.h"

void cases_experts(struct setup *);

/* Slots of rows for replicas: room for all, for some, for none. */
static void
case_slots(struct setup *t, int64_t n, int64_t replicas, int64_t room)
{
	Attr a = attr_default(OP_EXPERT_SLOTS);
	ValId idx = given(t, n % 2 ? DT_I32 : DT_I64, SHAPE(n),
	                  n % 3 ? -1 : 0, (double)(2 * replicas));
	ValId x = given(t, DT_BF16, SHAPE(n, 3, 2), -1, 1), slot, row;

	a.EXPERT_SLOTS.all = 2 * replicas;
	a.EXPERT_SLOTS.replicas = replicas;
	a.EXPERT_SLOTS.room = room;
	a.EXPERT_SLOTS.drop = 1;
	case_begin(t, "expert_slots");
	slot = APPLY(t, OP_EXPERT_SLOTS, &a, idx)->out[0];
	row = slot + 1;
	case_begin(t, "take_rows");
	x = APPLY(t, OP_TAKE_ROWS, NULL, x, row, slot)->out[0];
	APPLY(t, OP_TAKE_ROWS, NULL, x, slot, row);
}

/* Rows of all experts, of few, and of one alone; more than a tile's. */
void
cases_experts(struct setup *t)
{
	static const struct { int64_t n, experts, inner, width, most; } size[] =
		{ { 40, 5, 19, 13, 5 }, { 40, 9, 300, 33, 3 },
		  { 1700, 2, 40, 150, 1 }, { 600, 8, 24, 40, 8 },
		  { 30, 2, 20, 900, 2 }, { 30, 2, 900, 8, 2 },
		  { 0, 3, 8, 4, 3 }, { 7, 3, 0, 4, 3 } };
	static const DType types[] = { DT_F32, DT_BF16, DT_F16 };

	if (!(t->machine->target->fuses & FUSE_EXPERTS))
		return;
	for (int64_t n = 1; n < 900; n = 3 * n + 2)
		for (int64_t room = 1; room < 2 * n; room = 4 * room + 1)
			case_slots(t, n, 1 + n % 5, room);
	for (size_t k = 0; k < sizeof size / sizeof *size; k++)
		for (int i = 0; i < 6; i++) {
			Attr a = attr_default(OP_EXPERT_MATMUL);
			Attr b = attr_default(OP_EXPERT_DW);
			DType dt = types[i / 2];
			int64_t n = size[k].n, experts = size[k].experts;
			int64_t inner = size[k].inner, width = size[k].width;
			ValId x = given(t, dt, SHAPE(n, inner), -1, 1), idx;

			idx = given(t, i % 2 ? DT_I32 : DT_I64, SHAPE(n),
			            size[k].most > 1 ? -1 : 0,
			            (double)size[k].most);
			a.EXPERT_MATMUL.tb = i % 2;
			b.EXPERT_DW.experts = experts;
			case_begin(t, "expert_matmul");
			t->next_tolerance = dt == DT_BF16 ? 5e-2 : 0;
			APPLY(t, OP_EXPERT_MATMUL, &a, x,
			      given(t, dt, i % 2 ? SHAPE(experts, width, inner)
			                         : SHAPE(experts, inner, width),
			            -1, 1), idx);
			case_begin(t, "expert_dw");
			/* a GPU adds rows up one after the other */
			t->next_tolerance = dt == DT_BF16 ? 5e-2
				: n > 1000 ? 1e-4 : 0;
			APPLY(t, OP_EXPERT_DW, &b, x,
			      given(t, dt, SHAPE(n, width), -1, 1), idx);
		}
}
