/* Which element is meant: positions in arrays, in padding, in pieces. */
#ifndef CODEGEN_RULES_KERNELS_PLACES_H
#define CODEGEN_RULES_KERNELS_PLACES_H

/* Position in x (dims dim, row-major) of element i of an array of dims idim,
 * its coordinate on the axis replaced by k. */
CKR_LANE int64_t
ckr_element(int64_t i, int rank, const int64_t *idim, const int64_t *dim,
            int axis, int64_t k)
{
	int64_t at = 0, step = 1;

	for (int d = rank - 1; d >= 0; d--) {
		at += (d == axis ? k : i % idim[d]) * step;
		step *= dim[d];
		i /= idim[d];
	}
	return at;
}

/* Index i of a list of int64 or int32; -1 if it is out of range, a fault
 * where there is an env. */
CKR_DEVICE int64_t
ckr_index(const void *idx, int64_t i, int nbytes, int64_t n,
          struct ckr_env *env)
{
	int64_t k = nbytes == 8 ? ((const int64_t *)idx)[i]
	                        : ((const int32_t *)idx)[i];
	int64_t at = k < 0 ? k + n : k;

	if (at >= 0 && at < n)
		return at;
	if (env)
		ckr_fault(env, CKR_BAD_INDEX, i, k);
	return -1;
}

/* Slice number that index tuple i selects among dims dim[0..depth-1]; -1 if
 * there is none. */
CKR_DEVICE int64_t
ckr_tuple(const void *idx, int idx_bytes, int64_t i, int depth,
          const int64_t *dim, struct ckr_env *env)
{
	int64_t at = 0;

	for (int d = 0; d < depth; d++) {
		int64_t k = ckr_index(idx, i * depth + d, idx_bytes, dim[d],
		                      env);

		if (k < 0)
			return -1;
		at = at * dim[d] + k;
	}
	return at;
}

/* Where padding's position i comes from; mode 1 reflect, 2 edge, 3 wrap. */
CKR_LANE int64_t
ckr_pad_from(int64_t i, int64_t n, int64_t mode)
{
	int64_t period = mode == 1 ? 2 * (n - 1) : n;

	if (mode == 2)
		return i < 0 ? 0 : i < n ? i : n - 1;
	if (period == 0)
		return 0;
	i %= period;
	i = i < 0 ? i + period : i;
	return i < n ? i : period - i;
}

/* Positions first .. first + n - 1 of the whole are this rank's. */
struct ckr_part {
	int64_t whole, first, n;
};

/* Of pieces of `size` positions, each held by `shared` ranks; the last ones
 * may lack some. */
static inline struct ckr_part
ckr_part_of(int64_t whole, int64_t size, int64_t shared,
            const struct ckr_env *env)
{
	int64_t first = env->rank / shared * size, left = whole - first;
	struct ckr_part part = { whole, first, 0 };

	part.n = left < 0 ? 0 : left < size ? left : size;
	return part;
}

/* Position in the piece of position k of the whole; -1: not in it. */
CKR_LANE int64_t
ckr_in_part(const struct ckr_part *p, int64_t k)
{
	return k >= p->first && k < p->first + p->n ? k - p->first : -1;
}

/* Log-sum-exp of row i, and the label's logit, from what every part has of it,
 * stats [ranks, rows, 3], in the order of ranks. */
CKR_LANE float
ckr_stats_row(const float *stats, int64_t rows, int64_t i, int64_t shared,
              int64_t ranks, float *logit)
{
	const float *a = stats + i * 3;
	int64_t step = rows * 3 * shared, end = rows * 3 * ranks;
	float m = -__builtin_inff(), s = 0.0f;

	*logit = 0.0f;
	for (int64_t r = 0; r < end; r += step)
		m = a[r] > m ? a[r] : m;
	for (int64_t r = 0; r < end; r += step) {
		s += a[r + 1] * ckr_exp(a[r] - m);
		*logit += a[r + 2];
	}
	return m + ckr_log(s);
}

#endif
