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

#endif
