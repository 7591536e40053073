#include "runtime/data/csv_table.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/support/number.h"

enum { MAX_COLUMNS = 1 << 16 };

static const uint32_t unassigned = UINT32_MAX;

ckr_status
csv_add_column(struct csv_table *t, const char *name, struct err *e)
{
	char **v;

	if (t->n == MAX_COLUMNS)
		return err_set(e, CKR_EFORMAT, "%s: more than %d columns",
		               t->path, MAX_COLUMNS);
	v = mem_append(t->name, t->n, sizeof(*v));
	if (!v)
		return err_no_memory(e);
	t->name = v;
	t->name[t->n] = strdup(name);
	return t->name[t->n++] ? CKR_OK : err_no_memory(e);
}

/* An array without columns yet; its name has n characters. */
static ckr_status
begin_array(struct csv_table *t, const char *name, size_t n, bool list,
            struct err *e)
{
	char *copy = strndup(name, n), text[NAME_TEXT];

	if (!copy)
		return err_no_memory(e);
	for (uint32_t i = 0; i < t->narray; i++)
		if (!strcmp(t->v[i].name, copy)) {
			free(copy);
			return err_set(e, CKR_EFORMAT, "%s: two columns or "
			               "arrays have the name '%s'; try: "
			               "--columns NAME=NUMBER to name them",
			               t->path,
			               err_name(text, sizeof(text),
			                        t->v[i].name));
		}
	t->v[t->narray++] = (struct csv_array){ .name = copy, .list = list,
	                                        .whole = true };
	return CKR_OK;
}

/* Column j goes to the array begun last. */
static ckr_status
assign_column(struct csv_table *t, uint32_t j, struct err *e)
{
	if (t->array[j] != unassigned)
		return err_set(e, CKR_EARG, "--columns: column %u of '%s' is "
		               "used twice", j + 1, t->path);
	t->array[j] = t->narray - 1;
	t->place[j] = t->v[t->narray - 1].width++;
	return CKR_OK;
}

/* ---- --columns ---- */

/* "N" or "N-M". */
static bool
parse_range(const char *item, uint64_t *from, uint64_t *to)
{
	char first[24];
	size_t n = strspn(item, "0123456789");

	if (!n || n >= sizeof(first))
		return false;
	memcpy(first, item, n);
	first[n] = '\0';
	if (!number_whole(first, MAX_COLUMNS, from))
		return false;
	*to = *from;
	return !item[n] || (item[n] == '-'
	                    && number_whole(item + n + 1, MAX_COLUMNS, to));
}

static ckr_status
assign_item(struct csv_table *t, const char *item, struct err *e)
{
	uint64_t from, to;
	char text[NAME_TEXT];

	for (uint32_t j = 0; t->header && j < t->n; j++)
		if (!strcmp(t->name[j], item))
			return assign_column(t, j, e);
	if (!parse_range(item, &from, &to) || !from || from > to || to > t->n)
		return err_set(e, CKR_EARG, "--columns: '%s' has no column "
		               "'%s'; expected a column name, a number from 1 "
		               "to %u, or a range like 1-%u", t->path,
		               err_name(text, sizeof(text), item), t->n, t->n);
	for (uint64_t j = from; j <= to; j++)
		CKR_TRY(assign_column(t, (uint32_t)j - 1, e));
	return CKR_OK;
}

static ckr_status
assign_spec(struct csv_table *t, const char *text, struct err *e)
{
	size_t n = strcspn(text, "=");
	char *list = strdup(text + n + (text[n] == '=')), *rest = list, *item;
	uint64_t from, to;
	ckr_status s;

	if (!list)
		return err_no_memory(e);
	if (!n || !*list)
		s = err_set(e, CKR_EARG, "--columns '%s': expected NAME=LIST",
		            text);
	else
		s = begin_array(t, text, n, strchr(list, ',')
		                || (parse_range(list, &from, &to)
		                    && strchr(list, '-')),
		                e);
	while (s == CKR_OK && (item = strsep(&rest, ",")))
		s = assign_item(t, item, e);
	free(list);
	return s;
}

/* ---- the other columns ---- */

/* Where the number at the end of a name begins; its length if there is none,
 * or nothing before it. */
static size_t
number_suffix(const char *name)
{
	size_t len = strlen(name), n = len;

	while (n && isdigit((unsigned char)name[n - 1]))
		n--;
	return n ? n : len;
}

/* Whether column j + 1 is of the same name but for a number one higher. */
static bool
continues_run(const struct csv_table *t, uint32_t j)
{
	const char *a = t->name[j], *b;
	size_t n = number_suffix(a);
	uint64_t x, y;

	if (j + 1 == t->n || t->array[j + 1] != unassigned)
		return false;
	b = t->name[j + 1];
	return number_suffix(b) == n && !strncmp(a, b, n)
	       && number_whole(a + n, 1 << 30, &x)
	       && number_whole(b + n, 1 << 30, &y) && y == x + 1;
}

/* A column, and those that count on from it. */
static ckr_status
assign_run(struct csv_table *t, uint32_t j, struct err *e)
{
	const char *name = t->name[j];
	size_t n = strlen(name);
	bool list = continues_run(t, j);

	if (list)
		for (n = number_suffix(name); n > 1
		     && strchr("_.-", name[n - 1]);)
			n--;
	CKR_TRY(begin_array(t, name, n, list, e));
	while (continues_run(t, j))
		CKR_TRY(assign_column(t, j++, e));
	return assign_column(t, j, e);
}

ckr_status
csv_group_columns(struct csv_table *t, const char *const *columns, size_t n,
                  struct err *e)
{
	uint64_t before = 0;

	t->v = calloc(t->n + n + 1, sizeof(*t->v));
	t->array = malloc((t->n + 1) * sizeof(*t->array));
	t->place = malloc((t->n + 1) * sizeof(*t->place));
	if (!t->v || !t->array || !t->place)
		return err_no_memory(e);
	for (uint32_t j = 0; j < t->n; j++)
		t->array[j] = unassigned;
	for (size_t i = 0; i < n; i++)
		CKR_TRY(assign_spec(t, columns[i], e));
	if (!t->header && !n) {
		CKR_TRY(begin_array(t, "", 0, t->n > 1, e));
		for (uint32_t j = 0; j < t->n; j++)
			CKR_TRY(assign_column(t, j, e));
	}
	for (uint32_t j = 0; j < t->n && t->header; j++)
		if (t->array[j] == unassigned)
			CKR_TRY(assign_run(t, j, e));
	for (uint32_t i = 0; i < t->narray; i++) {
		t->v[i].before = before;
		before += t->v[i].width;
	}
	return CKR_OK;
}

void
csv_free(struct csv_table *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		free(t->name[i]);
	for (uint32_t i = 0; i < t->narray; i++)
		free(t->v[i].name);
	free(t->name);
	free(t->v);
	free(t->array);
	free(t->place);
	*t = (struct csv_table){ 0 };
}
