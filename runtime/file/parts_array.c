/* A folder of parts as one file of whole tensors.
 *
 * A tensor consists of stretches of its parts.  They are checked in closed
 * form, without a walk over the elements: each lies within the tensor, no two
 * have an element in common, and their sizes add up to the tensor's.
 */
#include "runtime/file/format.h"
#include "runtime/file/parts_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/mem.h"
#include "runtime/support/st_head.h"

#define AGAIN "copy the parts of all processes from one save into the folder"

/* A stretch, and the array of a part that has its elements. */
struct joined_stretch {
	struct stretch s;
	uint32_t part;
};

/* Stretches in the order of parts.  A part's elements lie in row-major order of
 * the whole, one behind the other. */
struct joined_parts {
	struct joined_stretch *v;       /* [n] */
	size_t n;
	size_t index;                   /* of the array in each part */
};

struct opening {
	struct array_file *f;
	const struct parts_index *index;
	struct err *e;
};

/* ---- checks ---- */

static ckr_status
refuse_overlap(const struct opening *o, const struct array *a,
               const struct joined_stretch *x, const struct joined_stretch *y,
               bool odd, uint64_t at)
{
	const struct array_file *part = o->f->part;
	char name[NAME_TEXT];

	err_name(name, sizeof(name), a->name);
	if (odd)
		return err_set(o->e, CKR_EFORMAT, "%s and %s: the parts of "
		               "tensor '%s' have runs %llu and %llu elements "
		               "apart; expected one distance; " AGAIN,
		               part[x->part].path, part[y->part].path, name,
		               (unsigned long long)x->s.stride,
		               (unsigned long long)y->s.stride);
	return err_set(o->e, CKR_EFORMAT, "%s and %s: both have element %llu "
	               "of tensor '%s'; " AGAIN, part[x->part].path,
	               part[y->part].path, (unsigned long long)at, name);
}

static int
compare_first(const void *a, const void *b)
{
	const struct joined_stretch *x = a, *y = b;

	return (x->s.first > y->s.first) - (x->s.first < y->s.first);
}

/* By pairs of those whose spans overlap. */
static ckr_status
check_parts_disjoint(const struct opening *o, const struct array *a,
                     const struct joined_parts *p)
{
	struct joined_stretch *v = malloc((p->n + 1) * sizeof(*v));
	ckr_status s = CKR_OK;
	uint64_t at;
	bool odd = false;

	if (!v)
		return err_no_memory(o->e);
	if (p->n)
		memcpy(v, p->v, p->n * sizeof(*v));
	qsort(v, p->n, sizeof(*v), compare_first);
	for (size_t i = 0; i < p->n && s == CKR_OK; i++)
		for (size_t k = i + 1; k < p->n && s == CKR_OK
		     && v[k].s.first < stretch_end(&v[i].s); k++)
			if (stretch_meets(&v[i].s, &v[k].s, &at, &odd) || odd)
				s = refuse_overlap(o, a, &v[i], &v[k], odd,
				                   at);
	free(v);
	return s;
}

/* Each element is there, once. */
static ckr_status
check_cover(const struct opening *o, const struct array *a,
            const struct joined_parts *p)
{
	uint64_t n = 0;
	char name[NAME_TEXT];

	CKR_TRY(check_parts_disjoint(o, a, p));
	for (size_t i = 0; i < p->n; i++)
		n += p->v[i].s.count * p->v[i].s.length;
	if (n == a->nelem)
		return CKR_OK;
	return err_set(o->e, CKR_EFORMAT, "%s: the parts have %llu of %llu "
	               "elements of tensor '%s'; " AGAIN, o->f->path,
	               (unsigned long long)n, (unsigned long long)a->nelem,
	               err_name(name, sizeof(name), a->name));
}

/* ---- joining ---- */

static ckr_status
add_stretch(const struct opening *o, struct joined_parts *p, struct stretch s,
            uint32_t part)
{
	struct joined_stretch *v = mem_append(p->v, p->n, sizeof(*v));

	if (!v)
		return err_no_memory(o->e);
	p->v = v;
	v[p->n++] = (struct joined_stretch){ s, part };
	return CKR_OK;
}

static ckr_status
bad_cut(const struct opening *o, uint32_t part, const struct array *a)
{
	char name[NAME_TEXT];

	return err_set(o->e, CKR_EFORMAT, "%s: the metadata of tensor '%s' do "
	               "not say which of its elements the part has; the file "
	               "is damaged; " AGAIN, o->f->part[part].path,
	               err_name(name, sizeof(name), a->name));
}

/* Adds the part's stretches; the whole's shape is put into *whole. */
static ckr_status
read_cut(const struct opening *o, uint32_t part, const struct array *a,
         const char *cut, struct joined_parts *p, struct array *whole)
{
	uint64_t n = 0;
	const char *s = cut;

	if (a->rank != 1 || !stretch_read_shape(&s, whole))
		return bad_cut(o, part, a);
	for (int i = 0; *s; i++) {
		struct stretch x;

		if (i == PARTS_STRETCHES || !stretch_read(&s, whole->nelem, &x))
			return bad_cut(o, part, a);
		n += x.count * x.length;
		CKR_TRY(add_stretch(o, p, x, part));
	}
	return n == a->nelem ? CKR_OK : bad_cut(o, part, a);
}

/* The part's metadata for each of its arrays, by index; NULL: none.  Caller
 * frees. */
static const char **
find_cuts(const struct array_file *f)
{
	const char **cut = calloc(f->n + 1, sizeof(*cut));
	const size_t n = strlen(PART_CUT);

	for (size_t i = 0; cut && i < f->nmeta; i++) {
		const struct array *a = strncmp(f->meta[i].key, PART_CUT, n)
			? NULL : array_find(f, f->meta[i].key + n);

		if (a)
			cut[a - f->v] = f->meta[i].value;
	}
	return cut;
}

static ckr_status
join_array(const struct opening *o, uint32_t part, size_t i, const char *cut)
{
	const struct array *a = &o->f->part[part].v[i];
	struct array *to = &o->f->v[i], whole = *a;
	struct joined_parts *p = &o->f->joined[i];
	struct stretch all = { 0, a->nelem, a->nelem, 1 };
	char name[NAME_TEXT];

	if (a->codes || !a->dtype)
		return bad_cut(o, part, a);
	if (cut)
		CKR_TRY(read_cut(o, part, a, cut, p, &whole));
	else if (a->nelem)
		CKR_TRY(add_stretch(o, p, all, part));
	if (!part) {
		*to = whole;
		to->at = 0;
		to->joined = p;
		p->index = i;
	}
	if (!strcmp(to->name, a->name) && to->dtype == a->dtype
	    && to->rank == whole.rank
	    && !memcmp(to->dim, whole.dim, (size_t)to->rank
	               * sizeof(*to->dim)))
		return CKR_OK;
	return err_set(o->e, CKR_EFORMAT, "%s: tensor %zu is '%s', of another "
	               "name, type or shape than in %s; " AGAIN,
	               o->f->part[part].path, i,
	               err_name(name, sizeof(name), a->name),
	               o->f->part[0].path);
}

static ckr_status
join_part(const struct opening *o, uint32_t part)
{
	const struct array_file *f = &o->f->part[part];
	const char **cut;
	ckr_status s = CKR_OK;

	if (f->n != o->f->n)
		return err_set(o->e, CKR_EFORMAT, "%s: %zu tensors, but %zu in "
		               "%s; " AGAIN, f->path, f->n, o->f->n,
		               o->f->part[0].path);
	cut = find_cuts(f);
	if (!cut)
		return err_no_memory(o->e);
	for (size_t i = 0; i < f->n && s == CKR_OK; i++)
		s = join_array(o, part, i, cut[i]);
	free(cut);
	return s;
}

/* All metadata but those of parts. */
static ckr_status
copy_meta(const struct opening *o)
{
	const struct array_file *from = &o->f->part[0];

	o->f->meta = calloc(from->nmeta + 1, sizeof(*o->f->meta));
	if (!o->f->meta)
		return err_no_memory(o->e);
	for (size_t i = 0; i < from->nmeta; i++)
		if (strncmp(from->meta[i].key, PART_CUT, strlen(PART_CUT)))
			o->f->meta[o->f->nmeta++] = from->meta[i];
	return CKR_OK;
}

/* ---- opening ---- */

/* The file is as long as it was saved, and has that header. */
static ckr_status
check_part(const struct opening *o, uint32_t i, const char *path)
{
	const struct part_mark *m = &o->index->mark[i];
	struct part_mark is;
	struct stat st;
	int fd;
	ckr_status s;

	if (stat(path, &st) && errno == ENOENT)
		return err_set(o->e, CKR_EIO, "%s: the file is missing: "
		               "expected %u part%s of save %llu; " AGAIN,
		               path, o->index->n, o->index->n > 1 ? "s" : "",
		               (unsigned long long)o->index->save);
	CKR_TRY(file_open(path, &fd, &is.bytes, o->e));
	if (is.bytes != m->bytes)
		s = err_set(o->e, CKR_EFORMAT, "%s: the file has %llu bytes, "
		            "but %llu were saved; " AGAIN, path,
		            (unsigned long long)is.bytes,
		            (unsigned long long)m->bytes);
	else
		s = parts_hash(fd, path, false, &is, NULL, o->e);
	close(fd);
	if (s != CKR_OK || is.header == m->header)
		return s;
	return err_set(o->e, CKR_EFORMAT, "%s: expected part %u of save %llu, "
	               "found a part with another header; " AGAIN, path, i,
	               (unsigned long long)o->index->save);
}

static ckr_status
open_one_part(const struct opening *o, uint32_t i)
{
	char *path = parts_path(o->f->path, i, o->index->save);
	ckr_status s = path ? check_part(o, i, path) : err_no_memory(o->e);

	if (s == CKR_OK)
		s = array_open_as(&o->f->part[i], path, format_read, NULL,
		                  o->e);
	o->f->npart += s == CKR_OK;
	free(path);
	return s;
}

static ckr_status
open_parts(const struct opening *o)
{
	struct array_file *f = o->f;
	size_t n = o->index->n;
	ckr_status s = CKR_OK;

	f->part = calloc(n + 1, sizeof(*f->part));
	f->hash = calloc(n + 1, sizeof(*f->hash));
	if (!f->part || !f->hash)
		return err_no_memory(o->e);
	for (uint32_t i = 0; i < n && s == CKR_OK; i++) {
		f->hash[i] = o->index->mark[i].data;
		s = open_one_part(o, i);
	}
	if (s != CKR_OK)
		return s;
	f->n = f->part[0].n;
	f->v = calloc(f->n + 1, sizeof(*f->v));
	f->joined = calloc(f->n + 1, sizeof(*f->joined));
	if (!f->v || !f->joined)
		return err_no_memory(o->e);
	for (uint32_t i = 0; i < n && s == CKR_OK; i++)
		s = join_part(o, i);
	for (size_t i = 0; i < f->n && s == CKR_OK; i++)
		s = check_cover(o, &f->v[i], &f->joined[i]);
	for (size_t i = 0; i < n; i++)
		f->size += f->part[i].size;
	if (s == CKR_OK)
		s = copy_meta(o);
	return s == CKR_OK ? array_index(f, o->e) : s;
}

/* *save: the number of the save, once it is known. */
static ckr_status
open_parts_folder(struct array_file *f, uint64_t *save, struct err *e)
{
	struct opening o = { f, NULL, e };
	struct parts_index index;
	struct stat st;
	ckr_status s;

	if (stat(f->path, &st))
		return err_set(e, CKR_EIO, "%s: cannot read: %m", f->path);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, CKR_EIO, "%s: expected a folder that ckrun "
		               "--save DIR/ wrote, found a file", f->path);
	if (!parts_has_index(f->path))
		return err_set(e, CKR_EIO, "%s: no complete checkpoint in the "
		               "folder: expected complete.json, which ckrun "
		               "--save DIR/ writes last", f->path);
	CKR_TRY(parts_read_index(f->path, &index, e));
	o.index = &index;
	*save = index.save;
	s = open_parts(&o);
	free(index.mark);
	return s;
}

/* A run has completed another save meanwhile, and deleted the parts. */
static bool
is_replaced(const char *dir, uint64_t save)
{
	struct parts_index now;
	struct err unused;

	if (!save || parts_read_index(dir, &now, &unused) != CKR_OK)
		return false;
	free(now.mark);
	return now.save != save;
}

/* ---- reading ---- */

/* The stretch that has element `at`, beginning with number k: runs of stretches
 * alternate in their order. */
static size_t
find_stretch(const struct joined_parts *p, size_t k, uint64_t at)
{
	while (!stretch_at(&p->v[k].s, at))
		k = k + 1 < p->n ? k + 1 : 0;
	return k;
}

/* Elements of the same part before element `at`. */
static uint64_t
part_offset(const struct joined_parts *p, size_t k, uint64_t at)
{
	uint32_t part = p->v[k].part;
	uint64_t n = 0;

	while (k > 0 && p->v[k - 1].part == part)
		k--;
	for (; k < p->n && p->v[k].part == part; k++)
		n += stretch_before(&p->v[k].s, at);
	return n;
}

ckr_status
parts_read(const struct array_file *f, const struct array *a, uint64_t first,
           uint64_t n, void *out, struct err *e)
{
	const struct joined_parts *p = a->joined;
	uint64_t size = dtype_row[a->dtype].nbytes;
	size_t k = 0;
	char *to = out;

	for (uint64_t at = first, some; at < first + n; at += some) {
		const struct array_file *part;

		k = find_stretch(p, k, at);
		part = &f->part[p->v[k].part];
		some = stretch_at(&p->v[k].s, at);
		some = some < first + n - at ? some : first + n - at;
		CKR_TRY(file_read(part->fd, part->path, to, some * size,
		                  part->v[p->index].at
		                  + part_offset(p, k, at) * size, e));
		to += some * size;
	}
	return CKR_OK;
}

static void
free_joined(struct array_file *f)
{
	for (size_t i = 0; f->joined && i < f->n; i++)
		free(f->joined[i].v);
	free(f->joined);
	free(f->hash);
}

static const struct array_joiner joiner = { parts_read, free_joined };

ckr_status
parts_open(struct array_file *f, const char *dir, struct err *e)
{
	uint64_t save;
	ckr_status s;

	do {
		save = 0;
		*f = (struct array_file){ .fd = -1, .path = strdup(dir),
			.joiner = &joiner };
		s = f->path ? open_parts_folder(f, &save, e)
		    : err_no_memory(e);
		if (s != CKR_OK)
			array_close(f);
	} while (s != CKR_OK && is_replaced(dir, save));
	return s;
}

ckr_status
parts_verify(const struct array_file *f, uint32_t first, uint32_t by,
             struct err *e)
{
	for (size_t i = first; f->hash && i < f->npart; i += by) {
		const struct array_file *p = &f->part[i];
		struct part_mark is;

		CKR_TRY(parts_hash(p->fd, p->path, true, &is, NULL, e));
		if (is.data != f->hash[i])
			return err_set(e, CKR_EFORMAT, "%s: the data are "
			               "damaged or of another run: their hash "
			               "differs from that in complete.json; "
			               AGAIN, p->path);
	}
	return CKR_OK;
}
