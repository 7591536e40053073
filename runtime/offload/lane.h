/* Transfers of one direction, one after the other. */
#ifndef RUNTIME_OFFLOAD_LANE_H
#define RUNTIME_OFFLOAD_LANE_H

#include "runtime/offload/offload.h"
#include "runtime/offload/store.h"

#include <pthread.h>

struct job {
	void *device_at;
	char *at;                       /* in the block */
	uint64_t n;
	uint32_t begin, end;            /* instructions */
	void *done;                     /* event of a GPU */
};

/* Job k is at index k % most. */
struct lane {
	enum offload_lane direction;
	struct device *device;
	struct job *job;
	uint32_t most;
	uint64_t begun, ended;          /* jobs that have begun; of those, that
	                                 * the caller has waited for */
	void *before;                   /* event of a GPU: what was enqueued
	                                 * before a job */
	/* beside the host: */
	const struct store *store;
	const char *block;              /* first address of the block */
	bool late;                      /* CKR_LATE, for tests: jobs run when
	                                 * the caller waits for them; what is
	                                 * fetched is NaN until then */
	bool started;                   /* there is a thread */
	pthread_t thread;
	pthread_mutex_t lock;           /* of what follows, and of `begun` */
	pthread_cond_t changed;
	bool stop;
	uint64_t done;                  /* jobs that have been carried out; */
	double bytes, sec;              /* all that they took */
	ckr_status status;              /* the first failure */
	struct err err;
};

/* The lane's `direction`, `device`, `most`, `store` and `block` are set; store
 * NULL: beside a GPU. */
ckr_status lane_open(struct lane *, struct err *);
void lane_close(struct lane *);
void lane_begin(struct lane *, struct job);
/* Wait until the first `jobs` jobs are done. */
ckr_status lane_wait(struct lane *, uint64_t jobs, struct err *);
/* Bytes per second of the jobs so far; 0: unknown. */
double lane_rate(struct lane *);

#endif
