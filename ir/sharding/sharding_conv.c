/* How a sharding passes through convolutions, batch normalisation, pools and
 * sampling: images and channels.  Spatial dims stay whole, since windows reach
 * across the ends of shards.
 */
#include "ir/sharding/sharding.h"

#include "ir/window.h"

/* ---- convolutions ----
 *
 * y = conv(x, w), dx = conv_dx(dy, w) and dw = conv_dw(x, dy) are one
 * trilinear form in x, w and y.  Of images and of channels on either side two
 * of the three have a dim, and the third is a sum over it where it is the
 * result; whole groups are sharded in all three.
 */

enum tensor { X, W, Y };
enum conv_dim { IMAGES, IN, OUT, GROUPS, NO_FACTOR };

static const int dim_of[3][NO_FACTOR] = {       /* -1: it has none */
	[X] = { 0, 1, -1, 1 },
	[W] = { -1, 1, 0, 0 },
	[Y] = { 0, -1, 1, 1 },
};

/* What the first two operands and the result are. */
static const enum tensor *
conv_tensors(const Node *n)
{
	static const enum tensor of[][3] = { { X, W, Y }, { Y, W, X },
		{ X, Y, W } };

	return of[n->op - OP_CONV];
}

/* That a rank has one group need not mean that there is one. */
static int64_t
count_groups(const struct sharding_rule *c)
{
	Attr a = c->n->attr;
	int64_t all = *attr_int_of(c->n->op, &a, "whole_extent");

	return all > 0 ? all : *attr_int_of(c->n->op, &a, "group");
}

/* In groups, nothing within one is sharded. */
static enum conv_dim
find_conv_dim(enum tensor t, int dim, bool groups)
{
	int f = IMAGES;

	while (f < GROUPS && dim_of[t][f] != dim)
		f++;
	if (f == GROUPS)
		return NO_FACTOR;
	if (!groups || f == IMAGES)
		return (enum conv_dim)f;
	return dim == dim_of[t][GROUPS] ? GROUPS : NO_FACTOR;
}

/* As given, but of `to` channels where that has `from`, the least that is not
 * sharded; 0: there is no such thing. */
static bool
sharding_value_dim(struct sharding_rule *c, int value_index, int dim,
                   int64_t from, int64_t to)
{
	Placement s = *given_split(c);

	s.axis = s.first_axis = dim;
	for (int i = 0; i < placement_listed(&s) && from > 0; i++) {
		if (s.segment[i] % (from * c->ranks) != 0)
			return false;
		s.segment[i] = s.segment[i] / from * to;
	}
	c->at[value_index] = s;
	return true;
}

/* A sum over an uneven sharding takes padding along, which only adjoints are
 * sure to have zeros in (products look for it, see placement_nn.c). */
static bool
can_sum_images(const struct sharding_rule *c)
{
	return placement_is_even(given_split(c), c->ranks)
		|| c->n->phase != PH_FORWARD;
}

bool
sharding_conv(struct sharding_rule *c)
{
	const enum tensor *t = conv_tensors(c->n);
	struct window w = window_of(c->g, c->n);
	bool bias = c->nin > 2 && has_value(c, 2);
	bool by_bias = c->from == 2 && c->from < c->nin;
	enum tensor by = t[c->from < 2 ? c->from : 2];
	enum conv_dim f = find_conv_dim(by, by_bias ? 1 : given_split(c)->axis,
	                                count_groups(c) > 1);
	int64_t each[3] = { 0 };        /* channels of a group */

	if (f == NO_FACTOR || given_split(c)->first_axis != given_split(c)->axis
	    || given_split(c)->replication != 1)
		return false;
	if (c->stated
	    && count_groups(c) != w.group * (f == GROUPS ? c->ranks : 1))
		return false;
	if (f == GROUPS) {
		each[X] = w.cin;
		each[W] = each[Y] = w.cout;
	}
	for (int k = 0; k < 3; k++) {
		int value_index = k < 2 ? k : result_value(c, 0),
		    dim = dim_of[t[k]][f];

		if (dim >= 0
		    && !sharding_value_dim(c, value_index, dim, each[by],
		                           each[t[k]]))
			return false;
	}
	if (dim_of[t[2]][f] < 0) {
		c->at[result_value(c, 0)].kind = PLACEMENT_PARTIAL;
		return !bias && can_sum_images(c);
	}
	return !bias || dim_of[t[2]][f] == 0
		|| sharding_value_dim(c, 2, 0, each[by], each[t[2]]);
}

/* ---- images and channels, each by itself ---- */

bool
sharding_planes(struct sharding_rule *c)
{
	if (given_split(c)->axis > 1)
		return false;
	for (int p = 0; p < c->nvalue; p++)
		if (has_value(c, p))
			c->at[p] = *given_split(c);
	return true;
}

/* Channels of batch normalisation, of which statistics and scales have one
 * number each.  A channel of zeros stays one, as long as its deviation is
 * not 0. */
bool
sharding_batchnorm(struct sharding_rule *c)
{
	const Placement *s = given_split(c);

	if (s->first_axis != s->axis
	    || s->axis != (c->shape[c->from].rank > 1)
	    || (!placement_is_even(s, c->ranks)
	        && !(c->n->attr.BATCHNORM.eps > 0)))
		return false;
	for (int p = 0; p < c->nvalue; p++)
		if (has_value(c, p)) {
			Placement to = *given_split(c);

			to.axis = to.first_axis = c->shape[p].rank > 1;
			c->at[p] = to;
		}
	return true;
}

/* Images with their positions, or channels, each of which has its part in the
 * positions' adjoint. */
bool
sharding_grid_sample(struct sharding_rule *c)
{
	int grid = 1, dgrid = result_value(c, 1);
	bool images = given_split(c)->axis == 0;

	if (given_split(c)->first_axis != given_split(c)->axis
	    || given_split(c)->axis > 1
	    || (!images && (c->from == grid || c->from == dgrid)))
		return false;
	for (int p = 0; p < c->nvalue; p++) {
		if (!has_value(c, p) || (!images && p == grid))
			continue;
		if (!images && p == dgrid)
			c->at[p].kind = PLACEMENT_PARTIAL;
		else
			c->at[p] = *given_split(c);
	}
	return true;
}
