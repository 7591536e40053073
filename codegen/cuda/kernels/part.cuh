/* What a rank has of a dim that is cut. */
#ifndef CKR_PART_H
#define CKR_PART_H

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

	left = left < 0 ? 0 : left;
	return ckr_part{ whole, first, left < size ? left : size };
}

/* Position in the piece of position k of the whole; -1: not in it. */
CKR_DEVICE int64_t
ckr_in_part(const struct ckr_part *p, int64_t k)
{
	return k >= p->first && k < p->first + p->n ? k - p->first : -1;
}

#endif
