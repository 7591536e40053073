/* The transport over MPI: the module ckr_mpi.so.
 *
 * Only nonblocking calls are made between open and close, so that the
 * caller can look at the clock.  The state is the process's, as MPI's is.
 */
#include "runtime/team/transport.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* The table's name for the loader. */
extern const struct ckr_transport ckr_transport;

enum { TAG = 7 };

static struct {
	bool ours;                      /* MPI was begun here */
	MPI_Comm comm[COMM_GROUPS];
	MPI_Request transfer[COMM_GROUPS];
	/* local ranks */
	MPI_Comm host;
	MPI_Win words;
	uint32_t *local;
	atomic_uint **heartbeat;
	/* out-of-band messages to the others */
	uint64_t oob_word;
	MPI_Request *oob_request;
	int rank, size;
	char text[MPI_MAX_ERROR_STRING + 80];
} run = { .host = MPI_COMM_NULL };

static const char *
mpi_error(const char *call, int code)
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
			return mpi_error("MPI_" #call, code_); \
	} while (0)

/* ---- coming and leaving ---- */

static const char *
init_mpi(void)
{
	int on, level;

	for (int g = 0; g < COMM_GROUPS; g++) {
		run.comm[g] = MPI_COMM_NULL;
		run.transfer[g] = MPI_REQUEST_NULL;
	}

	TRY(Initialized(&on));
	if (!on)
		TRY(Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level));
	run.ours = !on;
	return NULL;
}

/* Ranks of a machine are neighbours, however the launcher numbers them. */
static const char *
number_ranks(void)
{
	int first;

	TRY(Comm_rank(MPI_COMM_WORLD, &first));
	TRY(Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, first,
	                    MPI_INFO_NULL, &run.host));
	TRY(Comm_set_errhandler(run.host, MPI_ERRORS_RETURN));
	TRY(Bcast(&first, 1, MPI_INT, 0, run.host));
	TRY(Comm_split(MPI_COMM_WORLD, 0, first, &run.comm[COMM_ALL]));
	TRY(Comm_set_errhandler(run.comm[COMM_ALL], MPI_ERRORS_RETURN));
	TRY(Comm_rank(run.comm[COMM_ALL], &run.rank));
	TRY(Comm_size(run.comm[COMM_ALL], &run.size));
	return NULL;
}

/* A word of shared memory for the heartbeat of each local rank. */
static const char *
share_heartbeats(struct transport_place *place)
{
	int n, i, *rank, *all;
	void *mine;

	TRY(Comm_size(run.host, &n));
	TRY(Win_allocate_shared(64, 64, MPI_INFO_NULL, run.host, &mine,
	                        &run.words));
	run.local = malloc((size_t)n * sizeof(*run.local));
	run.heartbeat = malloc((size_t)n * sizeof(*run.heartbeat));
	run.oob_request = malloc((size_t)run.size * sizeof(*run.oob_request));
	if (!run.local || !run.heartbeat || !run.oob_request)
		return "out of memory";
	for (i = 0; i < run.size; i++)
		run.oob_request[i] = MPI_REQUEST_NULL;
	rank = &run.rank;
	all = (int *)run.local;
	TRY(Allgather(rank, 1, MPI_INT, all, 1, MPI_INT, run.host));
	for (i = 0; i < n; i++) {
		MPI_Aint size;
		int unit;

		TRY(Win_shared_query(run.words, i, &size, &unit,
		                     &run.heartbeat[i]));
		if (all[i] == run.rank)
			atomic_init(run.heartbeat[i], 0);
	}
	TRY(Barrier(run.host));
	place->nlocal = (uint32_t)n;
	place->local = run.local;
	place->heartbeat = run.heartbeat;
	return NULL;
}

static const char *
open_mpi(struct transport_place *place)
{
	const char *why = init_mpi();

	if (!why)
		why = number_ranks();
	if (!why)
		why = share_heartbeats(place);
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
split_comms(const struct comm_mesh *mesh)
{
	for (int g = COMM_TP; g < COMM_GROUPS; g++) {
		struct comm_ranks r = comm_ranks_of(mesh, (enum comm_group)g,
		                                    (uint32_t)run.rank);

		free_comm(&run.comm[g]);
		TRY(Comm_split(run.comm[COMM_ALL], (int)r.first, run.rank,
		               &run.comm[g]));
	}
	return NULL;
}

static void
close_link(void)
{
	MPI_Win_free(&run.words);
	for (int g = COMM_GROUPS; g--;)
		free_comm(&run.comm[g]);
	free_comm(&run.host);
	free(run.local);
	free(run.heartbeat);
	free(run.oob_request);
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
begin_mpi_allgather(enum comm_group g, const void *from, int n,
                    const struct transport_side *to)
{
	TRY(Iallgatherv(from, n, MPI_BYTE, to->base, to->count, to->at,
	                MPI_BYTE, run.comm[g], &run.transfer[g]));
	return NULL;
}

static const char *
begin_mpi_alltoall(enum comm_group g, const struct transport_side *from,
                   const struct transport_side *to)
{
	TRY(Ialltoallv(from->base, from->count, from->at, MPI_BYTE, to->base,
	               to->count, to->at, MPI_BYTE, run.comm[g],
	               &run.transfer[g]));
	return NULL;
}

static const char *
test_mpi(enum comm_group g, bool *done)
{
	int flag = 0;

	TRY(Test(&run.transfer[g], &flag, MPI_STATUS_IGNORE));
	*done = flag;
	return NULL;
}

/* ---- messages ---- */

static const char *
begin_mpi_message(struct transport_message *m)
{
	MPI_Comm all = run.comm[COMM_ALL];
	MPI_Request *request = malloc(sizeof(*request));
	int tag = TAG + 1 + (int)m->tag;

	m->request = request;
	m->done = false;
	if (!request)
		return "out of memory";
	if (m->out)
		TRY(Isend(m->data, m->n, MPI_BYTE, (int)m->rank, tag, all,
		          request));
	else
		TRY(Irecv(m->data, m->n, MPI_BYTE, (int)m->rank, tag, all,
		          request));
	return NULL;
}

static const char *
test_mpi_message(struct transport_message *m)
{
	int flag = 0;

	if (m->done)
		return NULL;
	TRY(Test(m->request, &flag, MPI_STATUS_IGNORE));
	m->done = flag;
	if (flag) {
		free(m->request);
		m->request = NULL;
	}
	return NULL;
}

/* ---- out-of-band messages ---- */

/* Does not wait: messages are sent when a process is missing. */
static void
send_mpi_oob(uint64_t word)
{
	run.oob_word = word;
	for (int r = 0; r < run.size; r++)
		if (r != run.rank && run.oob_request[r] == MPI_REQUEST_NULL)
			MPI_Isend(&run.oob_word, 1, MPI_UINT64_T, r, TAG,
			          run.comm[COMM_ALL], &run.oob_request[r]);
}

static bool
receive_mpi_oob(uint32_t *from, uint64_t *word)
{
	MPI_Comm all = run.comm[COMM_ALL];
	MPI_Status status;
	int flag = 0;

	if (MPI_Iprobe(MPI_ANY_SOURCE, TAG, all, &flag, &status) || !flag)
		return false;
	*from = (uint32_t)status.MPI_SOURCE;
	return MPI_Recv(word, 1, MPI_UINT64_T, status.MPI_SOURCE, TAG, all,
	                MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

const struct ckr_transport ckr_transport = {
	.version = CKR_TRANSPORT_VERSION,
	.name = "MPI",
	.open = open_mpi,
	.split = split_comms,
	.allgather = begin_mpi_allgather,
	.alltoall = begin_mpi_alltoall,
	.test = test_mpi,
	.begin_message = begin_mpi_message,
	.test_message = test_mpi_message,
	.send_oob = send_mpi_oob,
	.receive_oob = receive_mpi_oob,
	.abort = abort_link,
	.close = close_link,
};
