#include "runtime/ckrun/saves.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/err.h"
#include "runtime/file/parts_folder.h"

ckr_status
saves_open(struct saves *s, ckr_ctx *m, const struct ckrun_options *o)
{
	*s = (struct saves){ .o = o, .m = m, .saved = -1 };
	return o->save_async
	       ? ckr_save_reserve(m, o->save_every ? o->save : o->save_best)
	       : CKR_OK;
}

/* Link the file to `name`, and delete the oldest one. */
static ckr_status
keep_file(const struct saves *s, const char *name, const char *oldest)
{
	ckr_status st = CKR_OK;

	if (!ckr_rank(s->m)) {
		unlink(name);
		if (link(s->o->save, name))
			st = ckr_fail(s->m, CKR_EIO, "%s: cannot write: %m",
			              name);
		unlink(oldest);
	}
	return ckr_agree(s->m, st);
}

/* Delete the checkpoint in a folder, complete.json before parts. */
static ckr_status
delete_folder(const struct saves *s, const char *dir)
{
	if (!ckr_rank(s->m))
		parts_remove_complete(dir);
	CKR_TRY(ckr_agree(s->m, CKR_OK));
	parts_remove(dir, ckr_rank(s->m));
	return ckr_agree(s->m, CKR_OK);
}

/* The same for a folder of parts: each process links its own, and the first one
 * complete.json after that. */
static ckr_status
keep_folder(const struct saves *s, const char *name, const char *oldest)
{
	struct err e;
	ckr_status st;

	CKR_TRY(delete_folder(s, name));
	st = parts_link(s->o->save, name, ckr_rank(s->m), &e);
	if (st != CKR_OK)
		ckr_fail(s->m, st, "%s", e.text);
	CKR_TRY(ckr_agree(s->m, st));
	if (!ckr_rank(s->m))
		st = parts_link_complete(s->o->save, name, &e);
	if (st != CKR_OK)
		ckr_fail(s->m, st, "%s", e.text);
	CKR_TRY(ckr_agree(s->m, st));
	return delete_folder(s, oldest);
}

/* "FILE.STEP", also of a folder "FILE/"; NULL: no memory. */
static char *
name_of_step(const char *file, uint64_t step)
{
	size_t n = strlen(file);
	char *name;

	while (n > 1 && file[n - 1] == '/')
		n--;
	return asprintf(&name, "%.*s.%llu", (int)n, file,
	                (unsigned long long)step) < 0 ? NULL : name;
}

/* After a periodic --save: keep it as FILE.STEP, and --keep of these. */
static ckr_status
keep_saved(const struct saves *s)
{
	const struct ckrun_options *o = s->o;
	uint64_t old = o->keep * o->save_every;
	char *name, *oldest;
	ckr_status st;

	if (!o->keep || s->step % o->save_every)
		return CKR_OK;
	name = name_of_step(o->save, s->step);
	oldest = name_of_step(o->save, s->step > old ? s->step - old : 0);
	st = ckr_agree(s->m, name && oldest ? CKR_OK
	               : ckr_fail(s->m, CKR_ENOMEM, "out of memory"));
	if (st == CKR_OK)
		st = parts_in_folder(o->save) ? keep_folder(s, name, oldest)
		     : keep_file(s, name, oldest);
	free(name);
	free(oldest);
	return st;
}

static ckr_status
complete(struct saves *s, const char *path)
{
	if (path != s->o->save)
		return CKR_OK;
	s->saved = (int64_t)s->step;
	return keep_saved(s);
}

ckr_status
saves_wait(struct saves *s)
{
	const char *path = s->writing;

	if (!path)
		return CKR_OK;
	s->writing = NULL;
	CKR_TRY(ckr_save_wait(s->m));
	return complete(s, path);
}

ckr_status
saves_poll(struct saves *s)
{
	bool done;

	if (!s->writing)
		return CKR_OK;
	CKR_TRY(ckr_save_poll(s->m, &done));
	return done ? saves_wait(s) : CKR_OK;
}

ckr_status
saves_write(struct saves *s, const char *path, bool beside)
{
	beside &= s->o->save_async;
	CKR_TRY(saves_wait(s));
	CKR_TRY(beside ? ckr_save_async(s->m, path) : ckr_save(s->m, path));
	s->step = ckr_step_count(s->m);
	s->writing = beside ? path : NULL;
	return beside ? CKR_OK : complete(s, path);
}
