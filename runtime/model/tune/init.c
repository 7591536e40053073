/* Initial weights from a file of another model, or of a part of this one. */
#include <string.h>

#include "runtime/file/names.h"
#include "runtime/model/files.h"
#include "runtime/model/peers.h"
#include "runtime/support/glob.h"

/* The weight keeps its value whatever the file holds. */
static bool
is_skipped(const struct ckr_init *how, const char *name)
{
	return glob_any((int)how->nskip, how->skip, name);
}

static ckr_status
need_match(ckr_ctx *c, const struct array_file *f, const char *glob)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	char text[NAME_TEXT];
	bool any = false;

	for (uint32_t i = 0; i < c->lib->nshared && !any; i++)
		any = rt_is_weight(&t[i]) && glob_match(glob, t[i].name);
	for (size_t i = 0; i < f->n && !any; i++)
		any = glob_match(glob, f->v[i].name);
	return any ? CKR_OK
	       : err_set(&c->err, CKR_EARG, "'%s' matches no parameter or "
	                 "buffer of %s, and no tensor of %s",
	                 err_name(text, sizeof(text), glob), c->path, f->path);
}

/* Which weights the file, as this process sees it, leaves as they are. */
static ckr_status
choose(ckr_ctx *c, struct infile *o, const struct ckr_init *how)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;

	for (size_t k = 0; k < how->nskip; k++)
		CKR_TRY(need_match(c, &o->f, how->skip[k]));
	for (uint32_t i = 0; i < c->lib->nshared; i++)
		o->leave[i] |= rt_is_weight(&t[i])
			&& (is_skipped(how, t[i].name)
			    || (how->partial && !array_find(&o->f, t[i].name)));
	return CKR_OK;
}

static ckr_status
init_from(ckr_ctx *c, struct infile *o, const struct ckr_init *how)
{
	ckr_status s = o->far ? CKR_OK
	               : names_map(&o->f, how->map, how->nmap, &c->err);

	CKR_TRY(peers_agree(c, s, "reading"));
	CKR_TRY(infile_spare(c, o));
	s = o->far ? CKR_OK : choose(c, o, how);
	CKR_TRY(peers_agree(c, s, "reading"));
	CKR_TRY(infile_agree(c, o));
	return files_load_weights(c, o);
}

ckr_status
ckr_init(ckr_ctx *c, const char *path, const struct ckr_init *how)
{
	static const struct ckr_init plain;
	struct infile o;
	ckr_status s;

	CKR_TRY(rt_need_quiet(c));
	for (size_t k = 0; how && k < how->nmap; k++)
		if (!strchr(how->map[k], '='))
			return err_set(&c->err, CKR_EARG, "expected a mapping "
			               "OLD=NEW, got '%s'", how->map[k]);
	CKR_TRY(infile_open(c, path, &o));
	s = init_from(c, &o, how ? how : &plain);
	infile_close(&o);
	return s;
}

const char *
ckr_left(const ckr_ctx *c, size_t k)
{
	for (uint32_t i = 0; c && c->left && i < c->lib->nshared; i++)
		if (c->left[i] && !k--)
			return c->lib->program[0].tensor[i].name;
	return NULL;
}
