/* What traces and profiles say of an instruction. */
#include "runtime/measure/inside.h"
#include "runtime/ranks/comm.h"

const char *
instr_phase(int32_t phase)
{
	static const char *const text[] = { "forward", "recompute", "backward",
	                                    "weight", "update", "count" };

	return phase < 0        ? "other"
	       : phase < CKR_COUNT ? text[phase]
				   : text[CKR_COUNT];
}

uint32_t
instr_ranks(const struct world *w, uint32_t i)
{
	const struct comm_mesh mesh = world_mesh(w);
	const struct ckr_comm *comm = w->plan.p->instr[i].comm;

	return comm ? comm_ranks_of(&mesh, group_of_axis(comm->axis),
	                            w->first).n : 1;
}

double
instr_sent(const struct world *w, uint32_t i)
{
	const struct ckr_program *p = w->plan.p;
	const struct ckr_comm *comm = p->instr[i].comm;
	const int32_t *arg = p->arg + p->instr[i].arg0;

	if (comm && comm_is_message(comm))
		return comm->kind == CKR_SEND
		       ? (double)p->tensor[arg[0]].nbytes : 0;
	return comm && !comm_is_host(comm)
	       ? comm_sent(comm, instr_ranks(w, i), &p->tensor[arg[0]],
	                   &p->tensor[arg[1]]) : 0;
}
