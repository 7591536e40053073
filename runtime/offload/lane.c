/* A lane is a stream of a GPU, which events order with its kernels, or a thread
 * of the host. */
#include "runtime/offload/lane.h"

#include "runtime/support/now.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* ---- beside the host ---- */

static ckr_status
carry_out(const struct lane *l, const struct job *j, struct err *e)
{
	uint64_t at = (uint64_t)(j->at - l->block);

	return l->direction == OFFLOAD_FETCH
	       ? store_read(l->store, j->device_at, at, j->n, e)
	       : store_write(l->store, at, j->device_at, j->n, e);
}

/* The job that is next, when the lock is held.  After a failure nothing more is
 * moved. */
static void
run_next(struct lane *l)
{
	const struct job *j = &l->job[l->done % l->most];
	ckr_status s = l->status;
	double from;
	struct err e;

	if (s == CKR_OK) {
		pthread_mutex_unlock(&l->lock);
		from = now_sec();
		s = carry_out(l, j, &e);
		pthread_mutex_lock(&l->lock);
		l->sec += now_sec() - from;
		l->bytes += (double)j->n;
	}
	if (s != CKR_OK && l->status == CKR_OK) {
		l->status = s;
		l->err = e;
	}
	l->done++;
	pthread_cond_broadcast(&l->changed);
}

static void *
carry(void *lane)
{
	struct lane *l = lane;

	pthread_mutex_lock(&l->lock);
	while (!l->stop)
		if (l->done < l->begun)
			run_next(l);
		else
			pthread_cond_wait(&l->changed, &l->lock);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* Signals are for the caller's threads. */
static ckr_status
start_lane(struct lane *l, struct err *e)
{
	sigset_t all, before;

	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	if (l->late)
		return CKR_OK;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	l->started = !pthread_create(&l->thread, NULL, carry, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return l->started ? CKR_OK
	       : err_set(e, CKR_ENOMEM, "cannot start a thread for offloaded "
	                 "values");
}

static void
stop_lane(struct lane *l)
{
	if (l->started) {
		pthread_mutex_lock(&l->lock);
		l->stop = true;
		pthread_cond_broadcast(&l->changed);
		pthread_mutex_unlock(&l->lock);
		pthread_join(l->thread, NULL);
	}
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
}

static ckr_status
wait_for_thread(struct lane *l, uint64_t jobs, struct err *e)
{
	ckr_status s;

	pthread_mutex_lock(&l->lock);
	while (l->done < jobs)
		if (l->late)
			run_next(l);
		else
			pthread_cond_wait(&l->changed, &l->lock);
	s = l->status;
	if (s != CKR_OK)
		*e = l->err;
	pthread_mutex_unlock(&l->lock);
	return s;
}

/* ---- beside a GPU ---- */

static enum device_stream
stream_of(const struct lane *l)
{
	return l->direction == OFFLOAD_FETCH ? DEVICE_FETCH : DEVICE_OFFLOAD;
}

static ckr_status
open_events(struct lane *l, struct err *e)
{
	const struct device_calls *call = l->device->call;

	l->before = call->event_new(l->device);
	for (uint32_t i = 0; i < l->most; i++)
		l->job[i].done = call->event_new(l->device);
	return device_status(l->device, e);
}

static void
close_events(struct lane *l)
{
	const struct device_calls *call = l->device->call;

	call->event_free(l->device, l->before);
	for (uint32_t i = 0; l->job && i < l->most; i++)
		call->event_free(l->device, l->job[i].done);
}

static void
enqueue(struct lane *l, const struct job *j)
{
	const struct device_calls *call = l->device->call;

	call->event_record(l->device, l->before, DEVICE_COMPUTE);
	call->event_wait(l->device, l->before, stream_of(l));
	if (l->direction == OFFLOAD_FETCH)
		call->fetch_async(l->device, j->device_at, j->at, j->n);
	else
		call->offload_async(l->device, j->at, j->device_at, j->n);
	call->event_record(l->device, j->done, stream_of(l));
}

/* ---- both ---- */

ckr_status
lane_open(struct lane *l, struct err *e)
{
	l->job = calloc(l->most + 1, sizeof(*l->job));
	l->late = l->store && getenv("CKR_LATE");
	if (l->store)
		CKR_TRY(start_lane(l, e));
	if (!l->job)
		return err_no_memory(e);
	return l->store ? CKR_OK : open_events(l, e);
}

void
lane_close(struct lane *l)
{
	if (l->store)
		stop_lane(l);
	else
		close_events(l);
	free(l->job);
}

void
lane_begin(struct lane *l, struct job j)
{
	struct job *at = &l->job[l->begun % l->most];

	j.done = at->done;
	*at = j;
	if (!l->store) {
		enqueue(l, at);
		l->begun++;
		return;
	}
	if (l->late && l->direction == OFFLOAD_FETCH)
		memset(j.device_at, 0xff, j.n);
	pthread_mutex_lock(&l->lock);
	l->begun++;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

double
lane_rate(struct lane *l)
{
	double rate = 0;

	if (!l->store)
		return 0;
	pthread_mutex_lock(&l->lock);
	if (l->sec > 0)
		rate = l->bytes / l->sec;
	pthread_mutex_unlock(&l->lock);
	return rate;
}

ckr_status
lane_wait(struct lane *l, uint64_t jobs, struct err *e)
{
	uint64_t first = l->ended;

	l->ended = jobs;
	if (l->store)
		return wait_for_thread(l, jobs, e);
	for (uint64_t k = first; k < jobs; k++)
		l->device->call->event_wait(l->device,
		                            l->job[k % l->most].done,
		                            DEVICE_COMPUTE);
	return CKR_OK;
}
