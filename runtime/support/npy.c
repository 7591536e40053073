/* The dictionary has the punctuation of JSON, and is read by its cursor. */
#include "runtime/support/npy.h"
#include "runtime/support/json.h"

#include <stdio.h>
#include <string.h>

static bool
parse_quoted(struct json *j, char *out, size_t size)
{
	char stop[] = { '\'', '\\', '\0' };
	const char *from;
	size_t n;

	if (!json_accept(j, '\'')) {
		if (!json_accept(j, '"'))
			return false;
		stop[0] = '"';
	}
	from = j->text + j->at;
	n = strcspn(from, stop);
	if (from[n] != stop[0] || n >= size)
		return false;
	snprintf(out, size, "%.*s", (int)n, from);
	j->at += n + 1;
	return true;
}

static bool
parse_npy_shape(struct json *j, struct npy *a)
{
	if (!json_accept(j, '('))
		return false;
	while (!json_accept(j, ')')) {
		if (a->rank == NPY_MAX_RANK || !json_uint(j, &a->dim[a->rank]))
			return false;
		a->rank++;
		json_accept(j, 'L');
		if (!json_accept(j, ','))
			return json_accept(j, ')');
	}
	return true;
}

/* descr such as "<f4", "|b1", as a row of dtypes.h; 0: a type we do not
 * read. */
static int
descr_dtype(const char *descr)
{
	static const char *const row[] = {
		NULL,
#define DT(id, text, nbytes, ctype, onnx, st, npy, cls) npy,
#include "runtime/support/dtypes.h"
#undef DT
	};

	if (!descr[0] || !strchr("<|=", descr[0]))
		return 0;
	for (size_t i = 1; i < sizeof(row) / sizeof(*row); i++)
		if (row[i] && !strcmp(row[i], descr + 1))
			return (int)i;
	return 0;
}

/* Entries up to the bracket; false: they cannot be read. */
static bool
parse_entries(struct json *j, struct npy *a)
{
	char key[32];
	bool shaped = false;

	while (!json_accept(j, '}')) {
		if (!parse_quoted(j, key, sizeof(key)) || !json_accept(j, ':'))
			return false;
		if (!strcmp(key, "descr")) {
			a->plain = parse_quoted(j, a->descr, sizeof(a->descr));
			if (!a->plain)
				return true;
		} else if (!strcmp(key, "shape")) {
			if (shaped || !parse_npy_shape(j, a))
				return false;
			shaped = true;
		} else if (!strcmp(key, "fortran_order")) {
			a->fortran = json_word(j, "True");
			if (!a->fortran && !json_word(j, "False"))
				return false;
		} else {
			return false;
		}
		if (!json_accept(j, ',') && j->text[j->at] != '}')
			return false;
	}
	return a->descr[0] && shaped;
}

bool
npy_place(const unsigned char *head, size_t *at, size_t *n)
{
	bool first = head[6] == 1;

	*at = first ? 10 : 12;
	*n = head[8] | (size_t)head[9] << 8;
	if (!first)
		*n |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
	return !memcmp(head, "\x93NUMPY", 6) && head[6] >= 1 && head[6] <= 3;
}

bool
npy_parse(struct npy *a, char *text, size_t n)
{
	struct json j = { .text = text, .size = n };
	size_t size = sizeof(a->fault);

	*a = (struct npy){ .rank = 0 };
	a->legal = json_accept(&j, '{') && parse_entries(&j, a);
	a->dtype = descr_dtype(a->descr);
	if (!a->legal)
		snprintf(a->fault, size, "the .npy header is invalid");
	else if (!a->plain)
		snprintf(a->fault, size, "structured arrays are not supported");
	else if (!a->dtype)
		snprintf(a->fault, size, "element type '%s' is not supported; "
		         "convert with .astype()", a->descr);
	else if (a->fortran && a->rank > 1)
		snprintf(a->fault, size, "Fortran order is not supported; save "
		         "numpy.ascontiguousarray(x)");
	return !*a->fault;
}
