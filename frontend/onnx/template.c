/* The export template: the model's bytes without the contents of tensors that
 * training changes.  With it the run time writes the trained model without
 * knowing ONNX.
 *
 * The file is copied field by field as it lies on disk.  A tensor with a hole
 * (and one whose contents lie in an external file) is written anew: its own
 * fields without the contents, then raw_data.  A parameter that was untied
 * becomes an initializer; the Identity that carried its name vanishes, or the
 * reader is given the new name.  Only the graph's length changes, and it is
 * computed from the pieces.
 *
 * needs   flat values with their ids in the graph
 * cost    one walk over the top of the file; bytes of the template are copied
 * refuses results above 2 GiB, which protobuf cannot express, and models in
 *         which a trained value has no place of its own
 */
#include "frontend/onnx/flat.h"

#include <string.h>

enum { F_GRAPH = 7, F_NODE = 1, F_INITIALIZER = 5, F_NAME = 8 };

/* A piece of the output. */
struct rope_piece {
	const void *bytes;              /* NULL: a hole */
	uint64_t n;
	ValId val;                      /* of a hole */
	DType dt;
};

struct rope {
	Arena *arena;
	struct rope_piece *piece;
	size_t n, cap;
	uint64_t total;
};

struct template_builder {
	struct onnx_file *file;
	const struct flat *flat;
	Arena *arena;
	const unsigned char *data;
	const char *why;
};

static void
rope_push(struct rope *r, struct rope_piece piece)
{
	r->piece = arena_grow(r->arena, r->piece, r->n, &r->cap, r->n + 1,
	                      sizeof *r->piece);
	r->piece[r->n++] = piece;
	r->total += piece.n;
}

static void
rope_add(struct rope *r, const void *bytes, uint64_t n)
{
	rope_push(r, (struct rope_piece){ .bytes = bytes, .n = n });
}

static void
rope_varint(struct rope *r, uint64_t x)
{
	unsigned char *b = arena_alloc(r->arena, 10);

	rope_add(r, b, (uint64_t)wire_put_varint(b, x));
}

static void
rope_text(struct rope *r, uint32_t field, const char *s)
{
	rope_varint(r, field << 3 | 2);
	rope_varint(r, strlen(s));
	rope_add(r, s, strlen(s));
}

static void
rope_message(struct rope *r, uint32_t field, const struct rope *body)
{
	rope_varint(r, field << 3 | 2);
	rope_varint(r, body->total);
	for (size_t i = 0; i < body->n; i++)
		rope_push(r, body->piece[i]);
}

/* Fields of a TensorProto with its contents or their location. */
static bool
is_contents(uint32_t field)
{
	return field == WIRE_FLOATS || field == WIRE_INT32S
		|| field == WIRE_INT64S || field == WIRE_RAW
		|| field == WIRE_DOUBLES || field == WIRE_UINT64S
		|| field == 13 || field == 14;
}

/* The tensor at [at, end) of the file with a hole for `hole`, or with the
 * contents given; name NULL: its own. */
static void
rope_tensor(struct template_builder *b, struct rope *out, size_t at, size_t end,
            const char *name, const struct onnx_tensor *t, ValId hole)
{
	struct rope body = { .arena = b->arena };
	struct wire_field f;

	for (; at < end && !wire_next(b->data, at, end, &f); at = f.end)
		if (!is_contents(f.number) && !(name && f.number == F_NAME))
			rope_add(&body, b->data + f.at, f.end - f.at);
	if (name)
		rope_text(&body, F_NAME, name);
	rope_varint(&body, WIRE_RAW << 3 | 2);
	rope_varint(&body, (uint64_t)t->nbytes);
	if (t->nbytes && hole)
		rope_push(&body, (struct rope_piece){ NULL, (uint64_t)t->nbytes,
		                                      hole, t->dt });
	else if (t->nbytes)
		rope_add(&body, t->data, (uint64_t)t->nbytes);
	rope_message(out, F_INITIALIZER, &body);
}

/* Initializers of the top graph are the first flat values, in order. */
static void
rope_initializer(struct template_builder *b, struct rope *out,
                 const struct wire_field *f, int index)
{
	const struct flat_val *v = &b->flat->val[index + 1];
	const Onnx__TensorProto *p =
		b->file->model->graph->initializer[index];
	bool trained = v->verdict == VERDICT_PARAM
		|| (v->verdict == VERDICT_BUFFER && v->state_slot);
	struct onnx_tensor t;

	if (v->file) {
		rope_add(out, b->data + f->at, f->end - f->at);
		return;
	}
	if (!onnx_tensor_info(b->file, p, &t)) {
		b->why = "a tensor cannot be read";
		return;
	}
	if (!(trained && v->val) && !t.external) {
		rope_add(out, b->data + f->at, f->end - f->at);
	} else if (!v->val) {
		b->why = "unused external data is not read";
	} else if (trained || onnx_tensor_load(b->file, p, &t)) {
		rope_tensor(b, out, f->body, f->end, NULL, &t,
		            trained ? v->val : 0);
	}
	/* parameters untied from this one */
	for (int i = index + 2; i < b->flat->nval && b->flat->nuntied; i++) {
		const struct flat_val *u = &b->flat->val[i];

		if (u->untied && u->tie == index + 1 && u->val)
			rope_tensor(b, out, f->body, f->end, u->name, &t,
			            u->val);
	}
}

static void
rope_node(struct template_builder *b, struct rope *out,
          const struct wire_field *f, const struct flat_node *n)
{
	struct rope body = { .arena = b->arena };
	struct wire_field field;
	bool renamed = false;
	int input = 0;

	/* the Identity of an untied parameter */
	if (n && n->nout == 1 && b->flat->val[n->out[0]].untied)
		return;
	for (int k = 0; n && k < n->nin; k++)
		renamed |= b->flat->val[n->in[k]].untied
			&& b->flat->val[n->in[k]].def < 0;
	if (!renamed) {
		rope_add(out, b->data + f->at, f->end - f->at);
		return;
	}
	for (size_t at = f->body; at < f->end
	     && !wire_next(b->data, at, f->end, &field); at = field.end) {
		const struct flat_val *v = field.number == 1 && input < n->nin
			? &b->flat->val[n->in[input]] : NULL;

		input += field.number == 1;
		if (v && v->untied)
			rope_text(&body, 1, v->name);
		else
			rope_add(&body, b->data + field.at,
			         field.end - field.at);
	}
	rope_message(out, F_NODE, &body);
}

/* Whether every trained value has a place in the file. */
static const char *
obstacle(const struct flat *flat)
{
	size_t top = flat->file->model->graph->n_initializer;

	for (int i = 1; i < flat->nval; i++) {
		const struct flat_val *v = &flat->val[i];

		if (!v->val || v->verdict != VERDICT_PARAM)
			continue;
		if (!v->init)
			return "a parameter is an input of the graph";
		if ((size_t)i > top && !v->untied)
			return "a parameter lies in a subgraph or is stored "
			       "sparse";
	}
	for (int i = 0; i < flat->nnode; i++) {
		const struct flat_node *n = &flat->node[i];

		for (size_t k = 0; k < n->p->n_attribute; k++) {
			const Onnx__TensorProto *t = n->p->attribute[k]->t;

			if (t && t->has_data_location && t->data_location == 1)
				return "a constant lies in external data";
		}
	}
	return NULL;
}

static void
build_graph(struct template_builder *b, struct rope *out,
            const struct wire_field *g)
{
	const Onnx__GraphProto *p = b->file->model->graph;
	const struct flat_node **by_index = arena_array(b->arena,
		p->n_node + 1, sizeof *by_index);
	struct wire_field f;
	int node = 0, init = 0;

	for (int i = 0; i < b->flat->nnode; i++)
		if (b->flat->node[i].index >= 0)
			by_index[b->flat->node[i].index] = &b->flat->node[i];
	for (size_t at = g->body; at < g->end && !b->why; at = f.end) {
		if (wire_next(b->data, at, g->end, &f))
			break;
		if (f.number == F_NODE)
			rope_node(b, out, &f, by_index[node++]);
		else if (f.number == F_INITIALIZER)
			rope_initializer(b, out, &f, init++);
		else
			rope_add(out, b->data + f.at, f.end - f.at);
	}
}

/* Pieces to bytes and holes, in the file's arena. */
static struct onnx_template *
rope_flatten(Arena *arena, const struct rope *r)
{
	struct onnx_template *t = arena_alloc(arena, sizeof *t);
	unsigned char *bytes;

	for (size_t i = 0; i < r->n; i++) {
		t->nhole += !r->piece[i].bytes;
		t->n += r->piece[i].bytes ? (size_t)r->piece[i].n : 0;
	}
	bytes = arena_alloc(arena, t->n + 1);
	t->bytes = bytes;
	t->hole = arena_array(arena, (size_t)t->nhole + 1, sizeof *t->hole);
	t->n = 0;
	t->nhole = 0;
	for (size_t i = 0; i < r->n; i++) {
		if (!r->piece[i].bytes) {
			t->hole[t->nhole++] = (struct onnx_hole){
				t->n, r->piece[i].val, r->piece[i].dt
			};
			continue;
		}
		memcpy(bytes + t->n, r->piece[i].bytes, r->piece[i].n);
		t->n += r->piece[i].n;
	}
	return t;
}

void
template_build(struct onnx_file *file, const struct flat *flat)
{
	struct template_builder b = { .file = file, .flat = flat,
	                              .arena = arena_new(),
	                              .data = file->maps->data };
	struct rope all = { .arena = b.arena }, graph = { .arena = b.arena };
	struct wire_field f;

	b.why = obstacle(flat);
	for (size_t at = 0; at < file->maps->n && !b.why; at = f.end) {
		if (wire_next(b.data, at, file->maps->n, &f))
			break;
		if (f.number == F_GRAPH) {
			build_graph(&b, &graph, &f);
			rope_message(&all, F_GRAPH, &graph);
		} else {
			rope_add(&all, b.data + f.at, f.end - f.at);
		}
	}
	if (!b.why && all.total > INT32_MAX)
		b.why = "the model would exceed 2 GiB, the limit of protobuf";
	file->why_no_template = b.why;
	if (!b.why)
		file->template = rope_flatten(file->arena, &all);
	arena_free(b.arena);
}

const struct onnx_template *
onnx_get_template(const struct onnx_file *f, const char **why)
{
	*why = f->why_no_template;
	return f->template;
}
