/* MPI behind the table of link.h: the module ckr_mpi.so.
 *
 * Only nonblocking calls are made between open and close, so that whoever
 * waits can look at the clock.  The state is the process's, as MPI's is.
 */
#include "runtime/team/link.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* The table's name for whoever loads the module. */
extern const struct ckr_link ckr_link;

enum { TAG = 7 };

static struct {
	bool ours;                      /* MPI was begun here */
	MPI_Comm comm[LINK_GROUPS];
	MPI_Request transfer[LINK_GROUPS];
	/* mates */
	MPI_Comm host;
	MPI_Win words;
	uint32_t *mate;
	atomic_uint **pulse;
	/* words to the others */
	uint64_t word;
	MPI_Request *told;
	int rank, size;
	char text[MPI_MAX_ERROR_STRING + 80];
} run = { .comm = { MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL },
          .transfer = { MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL },
          .host = MPI_COMM_NULL };

static const char *
failed(const char *call, int code)
{
	char why[MPI_MAX_ERROR_STRING] = "";
	int n = 0;

	MPI_Error_string(code, why, &n);
	snprintf(run.text, sizeof(run.text), "%s: %s", call, why);
	return run.text;
}

#define TRY(call) \
	do { \
		int code_ = MPI_##call; \
		if (code_ != MPI_SUCCESS) \
			return failed("MPI_" #call, code_); \
	} while (0)

/* ---- coming and leaving ---- */

static const char *
begin(void)
{
	int on, level;

	TRY(Initialized(&on));
	if (!on)
		TRY(Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level));
	run.ours = !on;
	TRY(Comm_dup(MPI_COMM_WORLD, &run.comm[LINK_ALL]));
	TRY(Comm_set_errhandler(run.comm[LINK_ALL], MPI_ERRORS_RETURN));
	TRY(Comm_rank(run.comm[LINK_ALL], &run.rank));
	TRY(Comm_size(run.comm[LINK_ALL], &run.size));
	return NULL;
}

/* A word of shared memory for each rank of this machine. */
static const char *
find_mates(struct link_place *place)
{
	int n, i, *rank, *all;
	void *mine;

	TRY(Comm_split_type(run.comm[LINK_ALL], MPI_COMM_TYPE_SHARED, run.rank,
	                    MPI_INFO_NULL, &run.host));
	TRY(Comm_size(run.host, &n));
	TRY(Win_allocate_shared(64, 64, MPI_INFO_NULL, run.host, &mine,
	                        &run.words));
	run.mate = malloc((size_t)n * sizeof(*run.mate));
	run.pulse = malloc((size_t)n * sizeof(*run.pulse));
	run.told = malloc((size_t)run.size * sizeof(*run.told));
	if (!run.mate || !run.pulse || !run.told)
		return "out of memory";
	for (i = 0; i < run.size; i++)
		run.told[i] = MPI_REQUEST_NULL;
	rank = &run.rank;
	all = (int *)run.mate;
	TRY(Allgather(rank, 1, MPI_INT, all, 1, MPI_INT, run.host));
	for (i = 0; i < n; i++) {
		MPI_Aint size;
		int unit;

		TRY(Win_shared_query(run.words, i, &size, &unit,
		                     &run.pulse[i]));
		if (all[i] == run.rank)
			atomic_init(run.pulse[i], 0);
	}
	TRY(Barrier(run.host));
	place->nmate = (uint32_t)n;
	place->mate = run.mate;
	place->pulse = run.pulse;
	return NULL;
}

static const char *
open_link(struct link_place *place)
{
	const char *why = begin();

	if (!why)
		why = find_mates(place);
	place->rank = (uint32_t)run.rank;
	place->size = (uint32_t)run.size;
	return why;
}

static void
free_comm(MPI_Comm *comm)
{
	if (*comm != MPI_COMM_NULL)
		MPI_Comm_free(comm);
}

static const char *
divide(uint32_t tp)
{
	MPI_Comm all = run.comm[LINK_ALL];
	int n = (int)tp;

	free_comm(&run.comm[LINK_TP]);
	free_comm(&run.comm[LINK_DP]);
	TRY(Comm_split(all, run.rank / n, run.rank, &run.comm[LINK_TP]));
	TRY(Comm_split(all, run.rank % n, run.rank, &run.comm[LINK_DP]));
	return NULL;
}

static void
close_link(void)
{
	MPI_Win_free(&run.words);
	for (int g = LINK_GROUPS; g--;)
		free_comm(&run.comm[g]);
	free_comm(&run.host);
	free(run.mate);
	free(run.pulse);
	free(run.told);
	if (run.ours)
		MPI_Finalize();
}

static void
abort_link(int status)
{
	MPI_Abort(MPI_COMM_WORLD, status);
}

/* ---- transfers ---- */

static const char *
gather(enum link_group g, const void *from, int n, const struct link_side *to)
{
	TRY(Iallgatherv(from, n, MPI_BYTE, to->base, to->count, to->at,
	                MPI_BYTE, run.comm[g], &run.transfer[g]));
	return NULL;
}

static const char *
exchange(enum link_group g, const struct link_side *from,
         const struct link_side *to)
{
	TRY(Ialltoallv(from->base, from->count, from->at, MPI_BYTE, to->base,
	               to->count, to->at, MPI_BYTE, run.comm[g],
	               &run.transfer[g]));
	return NULL;
}

static const char *
test(enum link_group g, bool *done)
{
	int flag = 0;

	TRY(Test(&run.transfer[g], &flag, MPI_STATUS_IGNORE));
	*done = flag;
	return NULL;
}

/* ---- words ---- */

/* Nobody waits for these to arrive: they are told when nothing else does. */
static void
tell(uint64_t word)
{
	run.word = word;
	for (int r = 0; r < run.size; r++)
		if (r != run.rank && run.told[r] == MPI_REQUEST_NULL)
			MPI_Isend(&run.word, 1, MPI_UINT64_T, r, TAG,
			          run.comm[LINK_ALL], &run.told[r]);
}

static bool
hear(uint32_t *from, uint64_t *word)
{
	MPI_Comm all = run.comm[LINK_ALL];
	MPI_Status status;
	int flag = 0;

	if (MPI_Iprobe(MPI_ANY_SOURCE, TAG, all, &flag, &status) || !flag)
		return false;
	*from = (uint32_t)status.MPI_SOURCE;
	return MPI_Recv(word, 1, MPI_UINT64_T, status.MPI_SOURCE, TAG, all,
	                MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

const struct ckr_link ckr_link = {
	.version = CKR_LINK_VERSION,
	.name = "MPI",
	.open = open_link,
	.divide = divide,
	.gather = gather,
	.exchange = exchange,
	.test = test,
	.tell = tell,
	.hear = hear,
	.abort = abort_link,
	.close = close_link,
};
