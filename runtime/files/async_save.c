/* Checkpoints that a thread writes while training goes on.
 *
 * All processes begin a file together and copy what they write of it.  A thread
 * of each writes the copy and flushes it, at a pace that steps do not notice,
 * and at full speed where somebody waits.  Threads do not communicate: that of
 * a single process gives the file its name, but of several processes the first
 * one does in the next call after which all know that every thread is done.
 */
#include "runtime/files/inside.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct async_save {
	struct staging staging;
	struct tensor_writer writer;
	bool pending;                   /* begun, and its outcome is unknown */
	bool alone;                     /* there is no other process */
	bool threaded;                  /* `thread` is to be joined */
	pthread_t thread;
	atomic_bool written;            /* the thread is done: */
	ckr_status status;
	struct err err;
	struct pace pace;
};

/* ---- the thread ---- */

static ckr_status
write_and_flush(struct async_save *a)
{
	const struct new_file *f = &a->writer.w.file;

	CKR_TRY(staging_write(&a->staging, f->fd, f->path, a->writer.pace,
	                      &a->err));
	if (a->writer.part)
		return a->alone ? part_finish_alone(&a->writer, &a->err)
		       : part_place(&a->writer, &a->err);
	if (a->alone)
		return st_commit(&a->writer.w, &a->err);
	if (f->fd >= 0 && fsync(f->fd))
		return err_set(&a->err, CKR_EIO, "%s: cannot write: %m",
		               f->path);
	return CKR_OK;
}

static void *
write_file(void *user)
{
	struct async_save *a = user;

	a->status = write_and_flush(a);
	atomic_store(&a->written, true);
	return NULL;
}

/* The bytes are written, and those of a part read for its hash.  Steps of a GPU
 * leave a core to the thread. */
static void *
run_thread(void *user)
{
	struct async_save *a = user;
	double n = (double)a->staging.used;

	if (a->staging.device->addressable)
		a->writer.pace = &a->pace;
	pace_begin(&a->pace, a->writer.part ? 2 * n : n);
	return write_file(user);
}

/* Signals are the business of the program's own threads.  Without a thread, the
 * file is written now. */
static void
begin_writing(struct async_save *a)
{
	sigset_t all, before;

	a->pending = true;
	atomic_store(&a->written, false);
	pace_relax(&a->pace);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	a->threaded = !pthread_create(&a->thread, NULL, run_thread, a);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!a->threaded)
		write_file(a);
}

/* ---- beginning ---- */

static ckr_status
open_async(struct files *c)
{
	struct async_save *a = c->async;

	if (a)
		return CKR_OK;
	a = c->async = calloc(1, sizeof(*a));
	if (!a)
		return err_no_memory(c->err);
	a->staging.device = c->world->device;
	a->staging.threads = c->world->threads;
	a->writer.w.file.fd = -1;
	a->alone = !c->world->team;
	pace_init(&a->pace);
	return CKR_OK;
}

/* Begin the file, with memory for all that this process writes of it. */
static ckr_status
begin_file(struct files *c, const struct contents *k)
{
	struct async_save *a;
	ckr_status s;

	CKR_TRY(world_agree(c->world, open_async(c), "allocating memory"));
	a = c->async;
	CKR_TRY(writer_begin_contents(c, &a->writer, k));
	a->writer.staging = &a->staging;
	staging_begin(&a->staging, true);
	s = writer_put_contents(c, &a->writer, k);
	if (s == CKR_OK)
		s = staging_reserve(&a->staging, c->err);
	s = world_agree(c->world, s, "allocating memory");
	if (s != CKR_OK)
		writer_abort(&a->writer);
	return s;
}

ckr_status
async_save_reserve(struct files *c, const struct contents *k)
{
	CKR_TRY(begin_file(c, k));
	writer_abort(&c->async->writer);
	return CKR_OK;
}

ckr_status
async_save_start(struct files *c, const struct contents *k)
{
	struct async_save *a;
	ckr_status s;

	CKR_TRY(begin_file(c, k));
	a = c->async;
	staging_begin(&a->staging, false);
	s = writer_put_contents(c, &a->writer, k);
	if (s == CKR_OK)
		s = staging_sync(&a->staging, c->err);
	s = world_agree(c->world, s, "copying");
	if (s == CKR_OK)
		begin_writing(a);
	else
		writer_abort(&a->writer);
	return s;
}

/* ---- ending ---- */

static void
join_thread(struct async_save *a)
{
	pace_hurry(&a->pace);
	if (a->threaded)
		pthread_join(a->thread, NULL);
	a->threaded = false;
	a->pending = false;
}

ckr_status
files_save_wait(struct files *c)
{
	struct async_save *a = c->async;

	if (!a || !a->pending)
		return CKR_OK;
	join_thread(a);
	if (a->status != CKR_OK)
		err_set(c->err, a->status, "%s", a->err.text);
	if (!a->alone)
		return writer_commit(c, &a->writer, a->status);
	writer_abort(&a->writer);
	return a->status;
}

ckr_status
files_save_poll(struct files *c, bool *done)
{
	struct async_save *a = c->async;
	bool busy;

	*done = true;
	if (!a || !a->pending)
		return CKR_OK;
	CKR_TRY(world_any(c->world, !atomic_load(&a->written),
	                  stepping_progress(c->steps)->step, &busy));
	*done = !busy;
	return busy ? CKR_OK : files_save_wait(c);
}

void
async_save_close(struct files *c)
{
	if (!c->async)
		return;
	join_thread(c->async);
	writer_abort(&c->async->writer);
	staging_free(&c->async->staging);
	pace_destroy(&c->async->pace);
	free(c->async);
}

uint64_t
files_staging_bytes(const struct files *c)
{
	return c->async ? c->async->staging.size : 0;
}
