/* Reader of lists of images.  The list is read once; line offsets and labels go
 * to unnamed files, so that memory does not grow with the list. */
#include "runtime/data/images.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/image/image.h"
#include "runtime/support/number.h"
#include "runtime/support/path.h"

enum { LINE = 4352, BUFFERED = 1 << 12 };

static const uint64_t no_image = UINT64_MAX;

/* What images are read by. */
struct image_list {
	int fd;                         /* the list itself */
	int places;                     /* where lines begin, as uint64 */
	char *path;
	struct image image;
	uint64_t bytes;                 /* of an image */
	uint64_t last;                  /* in pixels; no_image: none */
	unsigned char *pixels;
};

/* The list as it is gone through. */
struct list_scan {
	struct image_list *list;
	FILE *file;
	char line[LINE];
	uint64_t number, at;            /* of the line, from 1; its place */
	uint64_t rows;
	uint64_t place[BUFFERED];
	int64_t label[BUFFERED];
	int labels;                     /* where they are written */
	struct err *e;
};

/* ---- lines ---- */

/* Cut "PATH LABEL" in two; false: it is none, or messages could not print the
 * path. */
static bool
split_line(char *line, int64_t *label)
{
	size_t n = strlen(line);
	uint64_t x;
	char *word;

	while (n && isspace((unsigned char)line[n - 1]))
		n--;
	line[n] = '\0';
	word = line + n;
	while (word > line && !isspace((unsigned char)word[-1]))
		word--;
	if (word == line || !number_whole(word + (*word == '-'), INT64_MAX, &x))
		return false;
	*label = *word == '-' ? -(int64_t)x : (int64_t)x;
	while (word > line && isspace((unsigned char)word[-1]))
		*--word = '\0';
	for (word = line; *word; word++)
		if (iscntrl((unsigned char)*word))
			return false;
	return *line != '\0';
}

/* The file that a path of the list means, to be freed. */
static char *
listed_path(const char *list, const char *path)
{
	int folder = *path == '/' ? 0 : (int)(path_base(list) - list);
	char *s;

	return asprintf(&s, "%.*s%s", folder, list, path) < 0 ? NULL : s;
}

static ckr_status
bad_line(const struct list_scan *s, const char *how)
{
	return err_set(s->e, CKR_EFORMAT, "%s:%llu: %s", s->list->path,
	               (unsigned long long)s->number, how);
}

/* The next line that is not blank; *more: there is one. */
static ckr_status
next_list_line(struct list_scan *s, bool *more)
{
	size_t n;

	do {
		s->at = (uint64_t)ftello(s->file);
		s->number++;
		*more = fgets(s->line, LINE, s->file);
		if (!*more)
			return ferror(s->file) ? bad_line(s, "cannot be read")
			                       : CKR_OK;
		n = strlen(s->line);
		if (n == LINE - 1 && s->line[n - 1] != '\n')
			return bad_line(s, "the line has more than 4350 "
			                "characters");
		if ((uint64_t)ftello(s->file) != s->at + n)
			return bad_line(s, "found a NUL byte; the file is not "
			                "text");
	} while (strspn(s->line, " \t\r\n") == n);
	return CKR_OK;
}

/* ---- the first time ---- */

static ckr_status
flush_lines(struct list_scan *s)
{
	uint64_t n = s->rows % BUFFERED ? s->rows % BUFFERED : BUFFERED;
	uint64_t at = (s->rows - n) * sizeof(*s->place);

	if (!s->rows)
		return CKR_OK;
	CKR_TRY(file_write(s->list->places, s->list->path, s->place,
	                   n * sizeof(*s->place), at, s->e));
	return file_write(s->labels, s->list->path, s->label,
	                  n * sizeof(*s->label), at, s->e);
}

/* Every image is as large as this one. */
static ckr_status
probe_first(struct list_scan *s)
{
	struct image_list *l = s->list;
	char *path = listed_path(l->path, s->line);
	ckr_status status;

	if (!path)
		return err_no_memory(s->e);
	status = image_probe(&l->image, path, s->e);
	free(path);
	l->bytes = (uint64_t)l->image.height * l->image.width
	           * l->image.channels;
	l->pixels = malloc(l->bytes + 1);
	return status != CKR_OK || l->pixels ? status : err_no_memory(s->e);
}

static ckr_status
scan_lines(struct list_scan *s)
{
	bool more = true;

	for (;;) {
		uint64_t i = s->rows % BUFFERED;

		CKR_TRY(next_list_line(s, &more));
		if (!more)
			break;
		s->place[i] = s->at;
		if (!split_line(s->line, &s->label[i]))
			return bad_line(s, "expected PATH LABEL: a path "
			                "without control characters and a "
			                "whole number");
		if (!s->rows)
			CKR_TRY(probe_first(s));
		if (++s->rows % BUFFERED == 0)
			CKR_TRY(flush_lines(s));
	}
	if (!s->rows)
		return err_set(s->e, CKR_EFORMAT, "%s: the file is empty",
		               s->list->path);
	return s->rows % BUFFERED ? flush_lines(s) : CKR_OK;
}

static ckr_status
scan_list(struct image_list *l, int *labels, uint64_t *rows, struct err *e)
{
	struct list_scan *s = calloc(1, sizeof(*s));
	int fd = s ? dup(l->fd) : -1;
	ckr_status status;

	if (s)
		s->file = fd < 0 ? NULL : fdopen(fd, "rb");
	if (!s || !s->file) {
		if (fd >= 0)
			close(fd);
		free(s);
		return err_no_memory(e);
	}
	s->list = l;
	s->e = e;
	status = temp_open(&s->labels, 0, l->path, e);
	*labels = s->labels;
	if (status == CKR_OK)
		status = temp_open(&l->places, 0, l->path, e);
	if (status == CKR_OK)
		status = scan_lines(s);
	*rows = s->rows;
	fclose(s->file);
	free(s);
	return status;
}

/* ---- rows ---- */

/* The pixels of image i. */
static ckr_status
load_image(struct image_list *l, uint64_t i, struct err *e)
{
	char line[LINE], *path;
	uint64_t at;
	int64_t label;
	size_t n;
	ckr_status s;

	if (l->last == i)
		return CKR_OK;
	l->last = no_image;
	CKR_TRY(file_read(l->places, l->path, &at, sizeof(at),
	                  i * sizeof(at), e));
	CKR_TRY(file_some(l->fd, l->path, line, LINE - 1, at, &n, e));
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (!split_line(line, &label))
		return err_set(e, CKR_EIO, "%s: the file changed while it was "
		               "read",
		               l->path);
	path = listed_path(l->path, line);
	if (!path)
		return err_no_memory(e);
	s = image_read(&l->image, path, l->pixels, e);
	free(path);
	if (s == CKR_OK)
		l->last = i;
	return s;
}

static ckr_status
read_images(void *list, uint64_t first, uint64_t n, void *out, struct err *e)
{
	struct image_list *l = list;

	for (uint64_t k; n; first += k, n -= k) {
		uint64_t at = first % l->bytes, left = l->bytes - at;

		k = n < left ? n : left;
		CKR_TRY(load_image(l, first / l->bytes, e));
		memcpy(out, l->pixels + at, k);
		out = (char *)out + k;
	}
	return CKR_OK;
}

static void
close_list(void *list)
{
	struct image_list *l = list;

	if (l->fd >= 0)
		close(l->fd);
	if (l->places >= 0)
		close(l->places);
	free(l->path);
	free(l->pixels);
	free(l);
}

static const struct array_provider provider = { read_images, close_list };

/* ---- opening ---- */

static ckr_status
make_image_arrays(struct array_file *f, const struct image *m, uint64_t rows,
                  struct err *e)
{
	CKR_TRY(array_alloc(f, 2, e));
	f->n = 2;
	f->v[0] = (struct array){ .name = "images", .dtype = CKR_U8, .rank = 4,
		.dim = { (int64_t)rows, m->height, m->width, m->channels },
		.made = true };
	f->v[1] = (struct array){ .name = "labels", .dtype = CKR_I64,
		.rank = 1, .dim = { (int64_t)rows } };
	for (int i = 0; i < 2; i++)
		if (!dtype_bytes(f->v[i].dtype, f->v[i].rank, f->v[i].dim,
		                 &f->v[i].nelem, &f->v[i].nbytes))
			return err_set(e, CKR_EFORMAT, "%s: too many images",
			               f->path);
	return CKR_OK;
}

ckr_status
images_read(struct array_file *f, const void *none, struct err *e)
{
	struct image_list *l = calloc(1, sizeof(*l));
	uint64_t rows = 0;
	int labels = -1;
	ckr_status s;

	(void)none;
	if (!l)
		return err_no_memory(e);
	*l = (struct image_list){ .fd = f->fd, .places = -1, .last = no_image,
	                          .path = strdup(f->path) };
	f->fd = -1;
	f->provider = &provider;
	f->made = l;
	s = l->path ? scan_list(l, &labels, &rows, e) : err_no_memory(e);
	f->fd = labels;
	return s == CKR_OK ? make_image_arrays(f, &l->image, rows, e) : s;
}
