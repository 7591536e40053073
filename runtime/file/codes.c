#include "runtime/file/codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/support/json.h"

#define STATE ".quant_state.bitsandbytes__"

enum {
	STATE_MOST = 4096,              /* bytes of JSON */
	PIECE = 4096,                   /* weights that are read at a time */
	BLOCK_LEAST = 16,
	SCALES = PIECE / BLOCK_LEAST + 2,
};

/* ---- the parts of a matrix ---- */

struct code_finder {
	struct array_file *f;
	struct err *e;
	struct array **sorted;          /* [n]: by name */
	bool *part;                     /* [n]: belongs to a matrix of codes */
	const char *name;               /* of the matrix at hand */
};

static int
compare_array_names(const void *a, const void *b)
{
	return strcmp((*(struct array *const *)a)->name,
	              (*(struct array *const *)b)->name);
}

static ckr_status
bad_codes(const struct code_finder *c, const char *why)
{
	char name[NAME_TEXT];

	return err_set(c->e, CKR_EFORMAT, "%s: 4-bit weights '%s' of "
	               "bitsandbytes: %s", c->f->path,
	               err_name(name, sizeof(name), c->name), why);
}

/* The array MATRIX END, of that type and number of elements; it is left out of
 * the file's arrays from now on. */
static ckr_status
take_part(struct code_finder *c, const char *end, uint8_t dtype, uint64_t n,
          struct array **found)
{
	struct array key, *of = &key, **hit;
	size_t size = strlen(c->name) + strlen(end) + 1;
	char why[120], *name = malloc(size);

	if (!name)
		return err_no_memory(c->e);
	snprintf(name, size, "%s%s", c->name, end);
	key.name = name;
	hit = bsearch(&of, c->sorted, c->f->n, sizeof(*c->sorted),
	              compare_array_names);
	free(name);
	if (hit && (*hit)->dtype == dtype && (*hit)->nelem == n) {
		*found = *hit;
		c->part[*hit - c->f->v] = *end != '\0';
		return CKR_OK;
	}
	snprintf(why, sizeof(why), "expected %s[%llu] '%s' beside them",
	         dtype_row[dtype].text, (unsigned long long)n, end);
	return bad_codes(c, why);
}

static ckr_status
take_floats(struct code_finder *c, const char *end, uint64_t n, float *to)
{
	struct array *a;

	CKR_TRY(take_part(c, end, CKR_F32, n, &a));
	return file_read(c->f->fd, c->f->path, to, n * sizeof(*to), a->at,
	                 c->e);
}

/* ---- the JSON ---- */

struct code_state {
	int rank;
	int64_t dim[CKR_MAX_DIMS], block, nested_block;
	double offset;
};

static bool
read_state_dim(struct json *j, void *to)
{
	struct code_state *s = to;

	return s->rank < CKR_MAX_DIMS ? json_uint(j, &s->dim[s->rank++])
	       : json_fail(j, "more than 8 dimensions");
}

static bool
read_state_member(struct json *j, const char *key, void *to)
{
	struct code_state *s = to;

	if (!strcmp(key, "shape"))
		return json_list(j, read_state_dim, s);
	if (!strcmp(key, "blocksize"))
		return json_uint(j, &s->block);
	if (!strcmp(key, "nested_blocksize"))
		return json_uint(j, &s->nested_block);
	if (!strcmp(key, "nested_offset"))
		return json_number(j, &s->offset);
	return json_skip(j);
}

static ckr_status
read_state(struct code_finder *c, const struct array *a, struct code_state *s)
{
	char text[STATE_MOST + 1] = "";
	struct json j = { .text = text, .size = a->nbytes };

	if (a->nbytes > STATE_MOST)
		return bad_codes(c, "their description is too long");
	CKR_TRY(file_read(c->f->fd, c->f->path, text, a->nbytes, a->at, c->e));
	if (!json_object(&j, read_state_member, s) || s->block < BLOCK_LEAST
	    || s->nested_block < 0 || s->rank < 1)
		return bad_codes(c, "their description is damaged");
	return CKR_OK;
}

/* ---- one matrix ---- */

static uint64_t
count_blocks(uint64_t n, uint64_t block)
{
	return n / block + (n % block != 0);
}

static ckr_status
take_scales(struct code_finder *c, struct weight_codes *w, uint64_t nelem)
{
	uint64_t n = count_blocks(nelem, w->block);
	struct array *a;

	CKR_TRY(take_part(c, ".absmax", w->nested ? CKR_U8 : CKR_F32, n, &a));
	w->scale_at = a->at;
	if (!w->nested)
		return CKR_OK;
	CKR_TRY(take_floats(c, ".nested_quant_map", 256, w->nested_level));
	CKR_TRY(take_part(c, ".nested_absmax", CKR_F32,
	                  count_blocks(n, w->nested_block), &a));
	w->nested_at = a->at;
	return CKR_OK;
}

static ckr_status
make_weights(struct code_finder *c, const struct code_state *s)
{
	struct array_file *f = c->f;
	uint64_t nelem, nbytes;
	struct weight_codes *w, **more;
	struct array *codes;

	if (!dtype_bytes(CKR_F32, s->rank, s->dim, &nelem, &nbytes))
		return bad_codes(c, "their shape is too large");
	more = mem_append(f->codes, f->ncodes, sizeof(*more));
	if (!more)
		return err_no_memory(c->e);
	f->codes = more;
	w = f->codes[f->ncodes] = malloc(sizeof(*w));
	if (!w)
		return err_no_memory(c->e);
	f->ncodes++;
	*w = (struct weight_codes){ .block = (uint64_t)s->block,
		.nested_block = (uint64_t)s->nested_block,
		.nested = s->nested_block > 0, .offset = (float)s->offset };
	CKR_TRY(take_part(c, "", CKR_U8, count_blocks(nelem, 2), &codes));
	CKR_TRY(take_floats(c, ".quant_map", 16, w->level));
	CKR_TRY(take_scales(c, w, nelem));
	codes->dtype = CKR_F32;
	codes->rank = s->rank;
	memcpy(codes->dim, s->dim, sizeof(codes->dim));
	codes->nelem = nelem;
	codes->nbytes = nbytes;
	codes->codes = w;
	return CKR_OK;
}

static ckr_status
find_matrices(struct code_finder *c)
{
	struct array_file *f = c->f;

	for (size_t i = 0; i < f->n; i++) {
		const char *at = strstr(f->v[i].name, STATE);
		struct code_state s = { 0 };
		ckr_status status;
		char *name;

		if (!at || f->v[i].dtype != CKR_U8)
			continue;
		name = strndup(f->v[i].name, (size_t)(at - f->v[i].name));
		if (!name)
			return err_no_memory(c->e);
		c->name = name;
		c->part[i] = true;
		status = read_state(c, &f->v[i], &s);
		if (status == CKR_OK)
			status = make_weights(c, &s);
		free(name);
		if (status != CKR_OK)
			return status;
	}
	return CKR_OK;
}

static bool
has_codes(const struct array_file *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (strstr(f->v[i].name, STATE))
			return true;
	return false;
}

ckr_status
codes_find(struct array_file *f, struct err *e)
{
	struct code_finder c = { .f = f, .e = e };
	size_t n = 0;
	ckr_status s = CKR_OK;

	if (!has_codes(f))
		return CKR_OK;
	c.sorted = calloc(f->n + 1, sizeof(*c.sorted));
	c.part = calloc(f->n + 1, sizeof(*c.part));
	if (!c.sorted || !c.part)
		s = err_no_memory(e);
	for (size_t i = 0; i < f->n && s == CKR_OK; i++)
		c.sorted[i] = &f->v[i];
	if (s == CKR_OK) {
		qsort(c.sorted, f->n, sizeof(*c.sorted), compare_array_names);
		s = find_matrices(&c);
	}
	for (size_t i = 0; i < f->n && s == CKR_OK; i++)
		if (!c.part[i])
			f->v[n++] = f->v[i];
	if (s == CKR_OK)
		f->n = n;
	free(c.sorted);
	free(c.part);
	return s;
}

/* ---- reading ---- */

/* Scales first .. first + n - 1. */
static ckr_status
read_scales(const struct array_file *f, const struct weight_codes *w,
            uint64_t first, uint64_t n, float *to, struct err *e)
{
	unsigned char code[SCALES];
	float scale[SCALES];
	uint64_t at, count;

	if (!w->nested)
		return file_read(f->fd, f->path, to, n * sizeof(*to),
		                 w->scale_at + first * sizeof(*to), e);
	at = first / w->nested_block;
	count = (first + n - 1) / w->nested_block - at + 1;
	CKR_TRY(file_read(f->fd, f->path, code, n, w->scale_at + first, e));
	CKR_TRY(file_read(f->fd, f->path, scale, count * sizeof(*scale),
	                  w->nested_at + at * sizeof(*scale), e));
	for (uint64_t i = 0; i < n; i++)
		to[i] = w->nested_level[code[i]]
			* scale[(first + i) / w->nested_block - at] + w->offset;
	return CKR_OK;
}

static ckr_status
read_piece(const struct array_file *f, const struct array *a, uint64_t first,
           uint64_t n, float *out, struct err *e)
{
	const struct weight_codes *w = a->codes;
	unsigned char code[PIECE / 2 + 1];
	float scale[SCALES];
	uint64_t byte = first / 2, block = first / w->block;

	CKR_TRY(file_read(f->fd, f->path, code, (first + n - 1) / 2 - byte + 1,
	                  a->at + byte, e));
	CKR_TRY(read_scales(f, w, block, (first + n - 1) / w->block - block + 1,
	                    scale, e));
	for (uint64_t i = first; i < first + n; i++) {
		unsigned char two = code[i / 2 - byte];

		out[i - first] = w->level[i % 2 ? two & 15 : two >> 4]
			* scale[i / w->block - block];
	}
	return CKR_OK;
}

ckr_status
codes_read(const struct array_file *f, const struct array *a, uint64_t first,
           uint64_t n, float *out, struct err *e)
{
	for (uint64_t i = 0; i < n; i += PIECE)
		CKR_TRY(read_piece(f, a, first + i, n - i < PIECE ? n - i
		                   : PIECE, out + i, e));
	return CKR_OK;
}
