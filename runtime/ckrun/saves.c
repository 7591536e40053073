#include "runtime/ckrun/saves.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/err.h"

ckr_status
saves_open(struct saves *s, ckr_ctx *m, const struct ckrun_options *o)
{
	*s = (struct saves){ .o = o, .m = m, .saved = -1 };
	return o->save_async
	       ? ckr_save_reserve(m, o->save_every ? o->save : o->save_best)
	       : CKR_OK;
}

/* After a periodic --save: link the file to FILE.STEP, and delete the oldest
 * file beyond --keep. */
static ckr_status
keep_saved(const struct saves *s)
{
	const struct ckrun_options *o = s->o;
	uint64_t old = o->keep * o->save_every;
	size_t n = strlen(o->save) + 24;
	char *name = malloc(n);
	ckr_status st = CKR_OK;

	if (!name)
		return ckr_fail(s->m, CKR_ENOMEM, "out of memory");
	if (o->keep && s->step % o->save_every == 0 && !ckr_rank(s->m)) {
		snprintf(name, n, "%s.%llu", o->save,
		         (unsigned long long)s->step);
		unlink(name);
		if (link(o->save, name))
			st = ckr_fail(s->m, CKR_EIO, "%s: cannot write: %m",
			              name);
		snprintf(name, n, "%s.%llu", o->save,
		         (unsigned long long)(s->step > old ? s->step - old
		                              : 0));
		unlink(name);
	}
	free(name);
	return ckr_agree(s->m, st);
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
