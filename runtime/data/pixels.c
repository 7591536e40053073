#include "runtime/data/pixels.h"

#include <stdio.h>
#include <string.h>

#include "runtime/support/number.h"

enum { MAX_TRANSPOSED = 4 };

/* ---- --normalize ---- */

/* Numbers with '/' between them, up to the end; how many, 0 if they are none,
 * or too many. */
static unsigned
parse_list(const char *text, size_t n, float *to)
{
	unsigned k = 0;

	for (size_t at = 0; at <= n;) {
		size_t len = 0;
		char one[40];
		double x;

		while (at + len < n && text[at + len] != '/')
			len++;
		if (k == MAX_CHANNELS || len >= sizeof(one))
			return 0;
		memcpy(one, text + at, len);
		one[len] = '\0';
		if (!number_real(one, &x))
			return 0;
		to[k++] = (float)x;
		at += len + 1;
	}
	return k;
}

ckr_status
normalization_parse(struct normalization *m, const char *text, struct err *e)
{
	size_t n = strcspn(text, ",");
	unsigned means = parse_list(text, n, m->mean), deviations = 0;
	bool positive = true;
	char shown[NAME_TEXT];

	if (text[n])
		deviations = parse_list(text + n + 1, strlen(text + n + 1),
		                        m->deviation);
	m->n = means;
	for (unsigned i = 0; i < deviations; i++)
		positive &= m->deviation[i] > 0;
	if (means && deviations == means && positive)
		return CKR_OK;
	return err_set(e, CKR_EARG, "--normalize '%s': expected MEAN,STD, each "
	               "one number or one per channel with '/' between (at "
	               "most %d), STD above 0; try: 0.5,0.5 or "
	               "0.485/0.456/0.406,0.229/0.224/0.225",
	               err_name(shown, sizeof(shown), text), MAX_CHANNELS);
}

/* ---- layouts ---- */

static bool
same_extents(const int64_t *a, const int64_t *b, int n)
{
	return !memcmp(a, b, (size_t)n * sizeof(*a));
}

/* Elements in the order of the input. */
static bool
fits_as_is(const struct array *a, int rank, const int64_t *dim)
{
	const int64_t *d = a->dim;

	if (rank == a->rank)
		return same_extents(d + 1, dim + 1, rank - 1);
	if (a->rank == 3 && rank == 4)
		return (dim[1] == 1 && same_extents(d + 1, dim + 2, 2))
		       || (dim[3] == 1 && same_extents(d + 1, dim + 1, 2));
	/* channels would have to be in some order */
	if (rank == 2 && (a->rank == 3 || (a->rank == 4 && (d[1] == 1
	                                                    || d[3] == 1))))
		return d[1] * d[2] * (a->rank == 4 ? d[3] : 1) == dim[1];
	return false;
}

static void
set_strides(struct pixels *p, uint64_t channels, uint64_t n, bool from_last,
            bool to_last)
{
	p->channels = channels;
	p->n = n;
	p->from_channel = from_last ? 1 : n;
	p->from_pixel = from_last ? channels : 1;
	p->to_channel = to_last ? 1 : n;
	p->to_pixel = to_last ? channels : 1;
}

bool
pixels_fit(struct pixels *p, const struct array *a, int rank,
           const int64_t *dim)
{
	const int64_t *d = a->dim;

	char kind = dtype_row[a->dtype].cls;

	*p = (struct pixels){ 0 };
	if ((kind != 'u' && kind != 'i') || a->rank < 2 || rank < 2)
		return false;
	if (fits_as_is(a, rank, dim)) {
		set_strides(p, 1,
		            a->dim[0] ? a->nelem / (uint64_t)a->dim[0] : 0,
		            false, false);
		p->ambiguous = a->rank == 4 && rank == 4 && d[1] > 1
			&& d[1] <= MAX_TRANSPOSED && d[1] == d[2]
			&& d[2] == d[3];
		return true;
	}
	if (a->rank != 4 || rank != 4)
		return false;
	if (d[3] <= MAX_TRANSPOSED && dim[1] == d[3]
	    && same_extents(d + 1, dim + 2, 2)) {
		set_strides(p, (uint64_t)d[3], (uint64_t)(d[1] * d[2]), true,
		            false);
		p->transposed = "HWC to CHW";
		return true;
	}
	if (d[1] <= MAX_TRANSPOSED && dim[3] == d[1]
	    && same_extents(d + 2, dim + 1, 2)) {
		set_strides(p, (uint64_t)d[1], (uint64_t)(d[2] * d[3]), false,
		            true);
		p->transposed = "CHW to HWC";
		return true;
	}
	return false;
}

void
pixels_transpose(struct pixels *p, const struct array *a, bool hwc)
{
	const int64_t *d = a->dim;

	if (!hwc)
		return;
	set_strides(p, (uint64_t)d[3], (uint64_t)(d[1] * d[2]), true, false);
	p->transposed = "HWC to CHW";
}

bool
pixels_split(struct pixels *p, const struct normalization *m, int rank,
             const int64_t *dim)
{
	bool first, last;

	if (m->n == 1)
		return true;
	if (p->transposed)
		return p->channels == m->n;
	first = rank == 4 && dim[1] == m->n;
	last = rank == 4 && dim[3] == m->n;
	last &= !p->ambiguous;
	if (first == last)
		return false;
	set_strides(p, m->n, p->n / m->n, last, last);
	return true;
}

/* ---- rows ---- */

void
pixels_convert(const struct pixels *p, const unsigned char *from, float *to)
{
	const struct normalization *m = p->normal;

	for (uint64_t c = 0; c < p->channels; c++) {
		const unsigned char *x = from + c * p->from_channel;
		float *y = to + c * p->to_channel, value[256];
		unsigned k = m && m->n > 1 ? (unsigned)c : 0;

		for (int i = 0; i < 256; i++)
			value[i] = m ? ((float)i / 255.0f - m->mean[k])
			               / m->deviation[k] : (float)i;
		for (uint64_t i = 0; i < p->n; i++)
			y[i * p->to_pixel] = value[x[i * p->from_pixel]];
	}
}
