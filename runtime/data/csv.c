/* Reader of CSV files.  A file is read twice: first to count rows and find
 * types, then to write the numbers, each array contiguous. */
#include "runtime/data/csv.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/data/csv_table.h"
#include "runtime/data/csv_text.h"
#include "runtime/support/number.h"

/* Numbers are of eight bytes; so many of them are buffered, or a row. */
enum { WIDE = 8, BUFFERED = 1 << 17 };

struct csv_reader {
	struct csv_text text;
	struct csv_table table;
	uint64_t rows;
	char *buffer;                   /* rows of every array, side by side */
	uint64_t buffer_rows;           /* for how many there is room */
	int to;                         /* where they are written */
	struct err *e;
};

/* A decimal number; whole: an integer that fits. */
static bool
parse_number(const char *s, double *real, int64_t *whole, bool *is_whole)
{
	const char *digits = s + (*s == '-' || *s == '+');
	size_t n = strspn(digits, "0123456789");
	uint64_t x;

	*is_whole = n && n <= 18 && !digits[n];
	if (*is_whole) {
		number_whole(digits, INT64_MAX, &x);
		*whole = *s == '-' ? -(int64_t)x : (int64_t)x;
		*real = (double)*whole;
		return true;
	}
	return strspn(s, "+-.eE0123456789") == strlen(s)
	       && number_real(s, real);
}

/* ---- the first line ---- */

static ckr_status
read_first_line(struct csv_reader *r)
{
	struct csv_text *c = &r->text;
	bool last = false, whole;
	double real;
	int64_t x;

	if (!csv_line(c))
		return c->failed ? c->failed
		       : err_set(r->e, CKR_EFORMAT, "%s: the file is empty",
		                 c->path);
	while (!last) {
		if (!csv_field(c, &last))
			return c->failed;
		r->table.header |= !parse_number(c->field, &real, &x, &whole);
		CKR_TRY(csv_add_column(&r->table, c->field, r->e));
	}
	return CKR_OK;
}

/* A first line with one of them is a row that lacks a number, not a header. */
static bool
is_missing_value(const char *name)
{
	static const char *const spelling[] = {
		"na", "n/a", "#n/a", "nan", "-nan", "null", "nil", "none",
		"inf", "-inf", "+inf", "infinity", "-infinity", "?", "-", "."
	};
	bool any = false;

	for (size_t i = 0; i < sizeof(spelling) / sizeof(*spelling); i++)
		any |= !strcasecmp(name, spelling[i]);
	return any;
}

/* As pandas writes an index, and columns without names. */
static ckr_status
check_header_row(const struct csv_reader *r)
{
	const struct csv_table *t = &r->table;
	unsigned long long line = r->text.line;
	bool count = t->n > 1 && !t->header;
	char text[16];

	for (uint32_t j = 0; j < t->n; j++) {
		if (!*t->name[j])
			return err_set(r->e, CKR_EFORMAT, "%s:%llu: column %u "
			               "of the header has no name; in pandas, "
			               "try: to_csv(..., index=False)", t->path,
			               line, j + 1);
		if (is_missing_value(t->name[j]))
			return err_set(r->e, CKR_EFORMAT, "%s:%llu: column %u: "
			               "expected a number or the name of the "
			               "column, found '%s'", t->path, line,
			               j + 1, t->name[j]);
		snprintf(text, sizeof(text), "%u", j);
		count &= !strcmp(t->name[j], text);
	}
	return !count ? CKR_OK
	       : err_set(r->e, CKR_EFORMAT, "%s:%llu: the first line counts 0 "
	                 "1 2 ..., as a header without names; in pandas, try: "
	                 "to_csv(..., header=False)", t->path, line);
}

/* ---- rows ---- */

static ckr_status
bad_number(const struct csv_reader *r, uint32_t j)
{
	const struct csv_table *t = &r->table;
	char name[NAME_TEXT], text[NAME_TEXT];

	return err_set(r->e, CKR_EFORMAT, "%s:%llu: column %u%s%s%s: expected "
	               "a number, found '%s'", t->path,
	               (unsigned long long)r->text.line, j + 1,
	               t->header ? " ('" : "", t->header
	               ? err_name(name, sizeof(name), t->name[j]) : "",
	               t->header ? "')" : "",
	               err_name(text, sizeof(text), r->text.field));
}

static ckr_status
bad_field_count(const struct csv_reader *r, uint32_t n)
{
	return err_set(r->e, CKR_EFORMAT, "%s:%llu: expected %u fields, as in "
	               "the first line, found %s%u", r->text.path,
	               (unsigned long long)r->text.line, r->table.n,
	               n > r->table.n ? "more than " : "",
	               n > r->table.n ? r->table.n : n);
}

/* Takes the number of column j in the row. */
typedef void FieldFn(struct csv_reader *, uint32_t j, double real,
                     int64_t whole, bool is_whole);

static void
note_type(struct csv_reader *r, uint32_t j, double real, int64_t whole,
          bool is_whole)
{
	struct csv_table *t = &r->table;

	(void)real;
	(void)whole;
	if (t->array[j] < t->narray)
		t->v[t->array[j]].whole &= is_whole;
}

static void
buffer_number(struct csv_reader *r, uint32_t j, double real, int64_t whole,
              bool is_whole)
{
	const struct csv_table *t = &r->table;
	const struct csv_array *a;
	uint64_t row = r->rows % r->buffer_rows;
	char *at;

	if (t->array[j] >= t->narray)
		return;
	a = &t->v[t->array[j]];
	at = r->buffer + (r->buffer_rows * a->before + row * a->width
	                  + t->place[j]) * WIDE;
	if (a->whole && is_whole)
		memcpy(at, &whole, WIDE);
	else
		memcpy(at, &real, WIDE);
}

/* The next row; *more: there was one. */
static ckr_status
read_csv_row(struct csv_reader *r, FieldFn *visit, bool *more)
{
	bool last = false, whole;
	double real = 0;
	int64_t x = 0;
	uint32_t j;

	*more = csv_line(&r->text);
	if (!*more)
		return r->text.failed;
	for (j = 0; !last; j++) {
		if (!csv_field(&r->text, &last))
			return r->text.failed;
		if (j == r->table.n)
			return bad_field_count(r, j + 1);
		if (!parse_number(r->text.field, &real, &x, &whole))
			return bad_number(r, j);
		visit(r, j, real, x, whole);
	}
	r->rows++;
	return j < r->table.n ? bad_field_count(r, j) : CKR_OK;
}

/* To the first row. */
static ckr_status
rewind_rows(struct csv_reader *r)
{
	bool last = false;

	csv_rewind(&r->text);
	r->rows = 0;
	if (!r->table.header || !csv_line(&r->text))
		return r->text.failed;
	while (!last && csv_field(&r->text, &last))
		;
	return r->text.failed;
}

static ckr_status
scan_rows(struct csv_reader *r)
{
	bool more = true;

	CKR_TRY(rewind_rows(r));
	while (more)
		CKR_TRY(read_csv_row(r, note_type, &more));
	return r->rows ? CKR_OK : err_set(r->e, CKR_EFORMAT, "%s: the file has "
	                                  "no row of numbers", r->text.path);
}

/* ---- arrays ---- */

static ckr_status
make_csv_arrays(struct csv_reader *r, struct array_file *f)
{
	const struct csv_table *t = &r->table;
	size_t size = 0;
	char *name;

	for (uint32_t i = 0; i < t->narray; i++)
		size += strlen(t->v[i].name) + 1;
	CKR_TRY(array_alloc(f, t->narray, r->e));
	f->text = name = malloc(size + 1);
	if (!f->text)
		return err_no_memory(r->e);
	for (uint32_t i = 0; i < t->narray; i++) {
		const struct csv_array *c = &t->v[i];
		struct array *a = &f->v[f->n++];

		a->name = name;
		name = stpcpy(name, c->name) + 1;
		a->dtype = c->whole ? CKR_I64 : CKR_F64;
		a->rank = c->list ? 2 : 1;
		a->dim[0] = (int64_t)r->rows;
		a->dim[1] = c->list ? c->width : 0;
		dtype_bytes(a->dtype, a->rank, a->dim, &a->nelem, &a->nbytes);
		a->at = c->before * r->rows * WIDE;
	}
	return CKR_OK;
}

/* The rows in the buffer, of which the last is the last one read. */
static ckr_status
flush_rows(struct csv_reader *r, const struct array_file *f)
{
	uint64_t n = r->rows % r->buffer_rows;
	uint64_t first;

	n = n ? n : r->buffer_rows;
	first = r->rows - n;
	for (uint32_t i = 0; i < r->table.narray; i++) {
		const struct csv_array *c = &r->table.v[i];

		CKR_TRY(file_write(r->to, r->text.path, r->buffer
		                   + r->buffer_rows * c->before * WIDE,
		                   n * c->width * WIDE, f->v[i].at
		                   + first * c->width * WIDE, r->e));
	}
	return CKR_OK;
}

static ckr_status
spill_rows(struct csv_reader *r, const struct array_file *f)
{
	uint64_t rows = r->rows;
	bool more = true;

	r->buffer_rows = BUFFERED / r->table.n ? BUFFERED / r->table.n : 1;
	r->buffer = calloc(r->buffer_rows * r->table.n, WIDE);
	if (!r->buffer)
		return err_no_memory(r->e);
	CKR_TRY(temp_open(&r->to, rows * r->table.n * WIDE, r->text.path,
	                  r->e));
	CKR_TRY(rewind_rows(r));
	while (more) {
		CKR_TRY(read_csv_row(r, buffer_number, &more));
		if (r->rows > rows)
			break;
		if (r->rows && (more ? r->rows % r->buffer_rows == 0
		                : r->rows % r->buffer_rows != 0))
			CKR_TRY(flush_rows(r, f));
	}
	return r->rows == rows ? CKR_OK
	       : err_set(r->e, CKR_EIO, "%s: the file changed while it was "
	                 "read",
	                 r->text.path);
}

static ckr_status
convert_file(struct csv_reader *r, struct array_file *f,
             const struct csv_columns *columns)
{
	CKR_TRY(csv_begin(&r->text, f->fd, f->path, r->e));
	CKR_TRY(read_first_line(r));
	CKR_TRY(check_header_row(r));
	CKR_TRY(csv_group_columns(&r->table, columns->text, columns->n, r->e));
	CKR_TRY(scan_rows(r));
	CKR_TRY(make_csv_arrays(r, f));
	return spill_rows(r, f);
}

ckr_status
csv_read(struct array_file *f, const void *columns, struct err *e)
{
	struct csv_reader *r = calloc(1, sizeof(*r));
	ckr_status s;

	if (!r)
		return err_no_memory(e);
	r->to = -1;
	r->e = e;
	r->table.path = f->path;
	s = convert_file(r, f, columns);
	if (r->to >= 0) {
		close(f->fd);
		f->fd = r->to;
	}
	csv_free(&r->table);
	free(r->buffer);
	free(r);
	return s;
}
