#include "runtime/file/stretch.h"

#include <stdio.h>
#include <stdlib.h>

char *
stretch_text(int rank, const int64_t *dim, const struct stretch *s, size_t n)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	for (int i = 0; i < rank; i++)
		fprintf(f, "%s%lld", i ? "," : "", (long long)dim[i]);
	fputs(";", f);
	for (size_t i = 0; i < n; i++) {
		fprintf(f, "%s%llu+%llu", i ? ", " : " ",
		        (unsigned long long)s[i].first,
		        (unsigned long long)s[i].length);
		if (s[i].count > 1)
			fprintf(f, "/%llu*%llu",
			        (unsigned long long)s[i].stride,
			        (unsigned long long)s[i].count);
	}
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

/* Digits at *s, below 2^61; moves *s past them. */
static bool
take_number(const char **s, uint64_t *x)
{
	uint64_t n = 0;

	if (**s < '0' || **s > '9')
		return false;
	for (; **s >= '0' && **s <= '9'; ++*s) {
		n = n * 10 + (uint64_t)(**s - '0');
		if (n >> 60)
			return false;
	}
	*x = n;
	return true;
}

static bool
take_char(const char **s, char c)
{
	if (**s != c)
		return false;
	++*s;
	return true;
}

bool
stretch_read_shape(const char **s, struct array *a)
{
	uint64_t x;

	for (a->rank = 0; **s && **s != ';'; a->rank++) {
		if (a->rank == CKR_MAX_DIMS
		    || (a->rank && !take_char(s, ',')) || !take_number(s, &x))
			return false;
		a->dim[a->rank] = (int64_t)x;
	}
	return take_char(s, ';')
	       && dtype_bytes(a->dtype, a->rank, a->dim, &a->nelem,
	                      &a->nbytes);
}

bool
stretch_read(const char **s, uint64_t n, struct stretch *x)
{
	uint64_t span;

	take_char(s, ',');              /* of another one */
	if (!take_char(s, ' ') || !take_number(s, &x->first)
	    || !take_char(s, '+') || !take_number(s, &x->length))
		return false;
	x->stride = x->length;
	x->count = 1;
	if (take_char(s, '/')
	    && (!take_number(s, &x->stride) || !take_char(s, '*')
	        || !take_number(s, &x->count)))
		return false;
	if (!x->length || !x->count || x->stride < x->length
	    || __builtin_mul_overflow(x->count - 1, x->stride, &span))
		return false;
	return x->first < n && x->length <= n - x->first
	       && span <= n - x->first - x->length;
}

uint64_t
stretch_end(const struct stretch *s)
{
	return s->first + (s->count - 1) * s->stride + s->length;
}

uint64_t
stretch_before(const struct stretch *s, uint64_t at)
{
	uint64_t i, in;

	if (at <= s->first)
		return 0;
	i = (at - s->first) / s->stride;
	if (i >= s->count)
		return s->count * s->length;
	in = (at - s->first) % s->stride;
	return i * s->length + (in < s->length ? in : s->length);
}

uint64_t
stretch_at(const struct stretch *s, uint64_t at)
{
	uint64_t in;

	if (at < s->first || at >= stretch_end(s))
		return 0;
	in = (at - s->first) % s->stride;
	return in < s->length ? s->length - in : 0;
}

/* Rounded down. */
static int64_t
floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Run i of a and run j of b overlap if D + m S lies between -length of b and
 * length of a, where m = j - i, D is the distance of their first runs and S
 * that of the runs of either, if it has several. */
bool
stretch_meets(const struct stretch *a, const struct stretch *b, uint64_t *at,
              bool *odd)
{
	int64_t d = (int64_t)b->first - (int64_t)a->first, stride, m, least;
	int64_t from;

	if (a->first >= stretch_end(b) || b->first >= stretch_end(a))
		return false;
	*odd = a->count > 1 && b->count > 1 && a->stride != b->stride;
	if (*odd)
		return false;
	stride = (int64_t)(a->count > 1 ? a->stride : b->stride);
	m = floor_div(-(int64_t)b->length - d, stride) + 1;
	least = -(int64_t)(a->count - 1);
	m = m > least ? m : least;
	from = d + m * stride;
	if (m > (int64_t)b->count - 1 || from >= (int64_t)a->length)
		return false;
	/* run max(0, -m) of a */
	*at = a->first + (m < 0 ? (uint64_t)-m * a->stride : 0)
		+ (from > 0 ? (uint64_t)from : 0);
	return true;
}
