/* Geometry of sliding windows. */
#include "ir/window.h"

bool
window_is_direct(const struct window *w)
{
	for (int i = 0; i < WINDOW_DIMS; i++)
		if (w->kernel[i] != 1 || w->stride[i] != 1 || w->begin[i] != 0
		    || w->in[i] != w->out[i])
			return false;
	return true;
}

int64_t
window_count(int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
             int64_t pads)
{
	int64_t reach, room;

	if (!mul_ok(kernel - 1, dilation, &reach) || !add_ok(in, pads, &room)
	    || !add_ok(room, -reach - 1, &room) || room < 0)
		return -1;
	return room / stride + 1;
}

/* List element i of n spatial dims, three in all. */
static void
spread_list(int64_t to[WINDOW_DIMS], const int64_t *from, int n,
            int64_t otherwise)
{
	for (int i = 0; i < WINDOW_DIMS; i++) {
		int k = i - (WINDOW_DIMS - n);

		to[i] = k < 0 ? otherwise : from[k];
	}
}

#define LISTS(id) do { \
	spread_list(w.stride, n->attr.id.stride.v, dims, 1); \
	spread_list(w.dilation, n->attr.id.dilation.v, dims, 1); \
	spread_list(w.begin, n->attr.id.begin.v, dims, 0); \
} while (0)

static struct window
pool_window(const Graph *g, const Node *n)
{
	const Shape *x = &g->val[n->in[0]].shape;
	const Shape *y = &g->val[n->out[0]].shape;
	bool grad = n->op == OP_AVGPOOL_GRAD;
	int dims = x->rank - 2;
	struct window w = { .images = x->dim[0], .group = 1,
		.cin = x->dim[1], .cout = x->dim[1] };

	if (n->op == OP_MAXPOOL) {
		/* the values may be unwanted, but not both */
		if (!n->out[0])
			y = &g->val[n->out[1]].shape;
		LISTS(MAXPOOL);
		spread_list(w.kernel, n->attr.MAXPOOL.kernel.v, dims, 1);
	} else if (grad) {
		LISTS(AVGPOOL_GRAD);
		spread_list(w.kernel, n->attr.AVGPOOL_GRAD.kernel.v, dims, 1);
	} else {
		LISTS(AVGPOOL);
		spread_list(w.kernel, n->attr.AVGPOOL.kernel.v, dims, 1);
	}
	spread_list(w.in, (grad ? y : x)->dim + 2, dims, 1);
	spread_list(w.out, (grad ? x : y)->dim + 2, dims, 1);
	return w;
}

struct window
window_of(const Graph *g, const Node *n)
{
	const Shape *a = &g->val[n->in[0]].shape, *x = a, *dy, *k;
	int dims = a->rank - 2;
	struct window w = { .images = a->dim[0] };

	switch (n->op) {
	case OP_CONV:
		k = &g->val[n->in[1]].shape;
		dy = &g->val[n->out[0]].shape;
		LISTS(CONV);
		w.group = n->attr.CONV.group;
		break;
	case OP_CONV_DX:
		k = &g->val[n->in[1]].shape;
		x = &g->val[n->out[0]].shape;
		dy = a;
		LISTS(CONV_DX);
		w.group = n->attr.CONV_DX.group;
		break;
	case OP_CONV_DW:
		k = &g->val[n->out[0]].shape;
		dy = &g->val[n->in[1]].shape;
		LISTS(CONV_DW);
		w.group = n->attr.CONV_DW.group;
		break;
	default:
		return pool_window(g, n);
	}
	w.cin = k->dim[1];
	w.cout = k->dim[0] / w.group;
	spread_list(w.in, x->dim + 2, dims, 1);
	spread_list(w.out, dy->dim + 2, dims, 1);
	spread_list(w.kernel, k->dim + 2, dims, 1);
	return w;
}

int
col2im_dims(const Graph *g, const Node *n, struct columns c[WINDOW_DIMS],
            const char **why)
{
	const Val *image = &g->val[n->in[1]], *block = &g->val[n->in[2]];
	const IntList *list[] = { &n->attr.COL2IM.stride,
		&n->attr.COL2IM.dilation, &n->attr.COL2IM.begin,
		&n->attr.COL2IM.end };
	int dims = (int)val_nelem(image);

	*why = "image and block: expected one to three extents each";
	if (val_nelem(image) < 1 || val_nelem(image) > WINDOW_DIMS
	    || val_nelem(block) != dims)
		return 0;
	*why = "strides, dilations and pads: expected one value per dim";
	for (int i = 0; i < 4; i++)
		if (list[i]->n && list[i]->n != dims)
			return 0;
	*why = "an extent, stride, dilation or pad is out of range";
	for (int d = 0; d < dims; d++) {
		c[d] = (struct columns){
			.image = val_int(image, d), .block = val_int(block, d),
			.stride = list[0]->n ? list[0]->v[d] : 1,
			.dilation = list[1]->n ? list[1]->v[d] : 1,
			.begin = list[2]->n ? list[2]->v[d] : 0,
			.end = list[3]->n ? list[3]->v[d] : 0,
		};
		if (c[d].image < 1 || c[d].image > WINDOW_MAX
		    || c[d].block < 1 || c[d].block > WINDOW_MAX
		    || c[d].stride < 1 || c[d].stride > WINDOW_MAX
		    || c[d].dilation < 1 || c[d].dilation > WINDOW_MAX
		    || c[d].begin < 0 || c[d].begin > WINDOW_MAX
		    || c[d].end < 0 || c[d].end > WINDOW_MAX)
			return 0;
		c[d].count = window_count(c[d].image, c[d].block, c[d].stride,
		                          c[d].dilation,
		                          c[d].begin + c[d].end);
		if (c[d].count < 1) {
			*why = "the block is larger than the padded image";
			return 0;
		}
	}
	return dims;
}
