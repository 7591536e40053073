/* Windows of pools. */
#ifndef CODEGEN_RULES_KERNELS_WINDOWS_H
#define CODEGEN_RULES_KERNELS_WINDOWS_H

struct ckr_pool {
	int64_t planes;
	int include;                    /* padding counts in averages */
	int64_t in[3], out[3], kernel[3], stride[3], dilation[3], begin[3];
	int64_t end[3];
};

CKR_LANE int64_t
ckr_volume(const int64_t *v)
{
	return v[0] * v[1] * v[2];
}

/* Taps lo..hi-1 of window o lie within the data along dim i. */
CKR_LANE int64_t
ckr_pool_taps(const struct ckr_pool *p, int i, int64_t o, int64_t *lo,
              int64_t *hi)
{
	int64_t at = o * p->stride[i] - p->begin[i], d = p->dilation[i];

	*lo = at < 0 ? (d - 1 - at) / d : 0;
	*hi = at < p->in[i] ? (p->in[i] - 1 - at) / d + 1 : 0;
	*hi = *hi > p->kernel[i] ? p->kernel[i] : *hi;
	return at;
}

/* Taps of window o that an average divides by, along dim i. */
CKR_LANE int64_t
ckr_pool_count(const struct ckr_pool *p, int i, int64_t at, int64_t lo,
               int64_t hi)
{
	int64_t n;

	if (!p->include)
		return hi > lo ? hi - lo : 0;
	n = (p->in[i] + p->end[i] - 1 - at) / p->dilation[i] + 1;
	return n > p->kernel[i] ? p->kernel[i] : n;
}

/* A window: the data it covers. */
struct ckr_cover {
	int64_t at[3], lo[3], hi[3];
};

/* Position in the plane of the first element of a row of taps. */
CKR_LANE int64_t
ckr_cover_row(const struct ckr_pool *p, const struct ckr_cover *v, int64_t kd,
              int64_t kh)
{
	return ((v->at[0] + kd * p->dilation[0]) * p->in[1] + v->at[1] +
	        kh * p->dilation[1]) * p->in[2] + v->at[2];
}

/* What an average divides by. */
CKR_LANE float
ckr_pool_share(const struct ckr_pool *p, const struct ckr_cover *v)
{
	int64_t n = 1;

	for (int i = 0; i < 3; i++)
		n *= ckr_pool_count(p, i, v->at[i], v->lo[i], v->hi[i]);
	return (float)n;
}

/* The average of a window of the plane x. */
CKR_TYPED float
ckr_cover_mean(const struct ckr_pool *p, const struct ckr_cover *v,
               const ckr_t *x)
{
	float sum = 0.0f;

	for (int64_t kd = v->lo[0]; kd < v->hi[0]; kd++)
	for (int64_t kh = v->lo[1]; kh < v->hi[1]; kh++) {
		int64_t row = ckr_cover_row(p, v, kd, kh);

		for (int64_t k = v->lo[2]; k < v->hi[2]; k++)
			sum += ckr_get(x[row + k * p->dilation[2]]);
	}
	return sum / ckr_pool_share(p, v);
}

#endif
