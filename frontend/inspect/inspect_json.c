/* Write the report of `ckc inspect` as JSON. */
#include "frontend/inspect/findings.h"
#include "runtime/support/json_write.h"

static void
put_initializers(struct json_out *j, const struct inspect_report *x)
{
	static const char *const text[] = { "none", "parameter", "buffer",
	                                    "constant" };

	json_open(j, "initializers", '[', JSON_INDENTED);
	FOR_FLAT_VALS (v, x->f) {
		const Onnx__TensorProto *t = v->init;
		int64_t n = 0;

		if (!t)
			continue;
		json_open(j, NULL, '{', JSON_SPACED);
		json_text(j, "name", v->name);
		json_text(j, "verdict", text[v->verdict]);
		json_bool(j, "frozen", v->frozen);
		json_bool(j, "used", v->nuse || v->output);
		json_int(j, "bytes", onnx_tensor_bytes(t, &n));
		json_text(j, "dtype",
		          dtype_info[onnx_dtype(t->data_type)].text);
		json_open(j, "shape", '[', JSON_SPACED);
		for (size_t k = 0; k < t->n_dims; k++)
			json_int(j, NULL, t->dims[k]);
		json_close(j);
		json_text(j, "reason", v->reason ? v->reason : "");
		json_close(j);
	}
	json_close(j);
}

static void
put_operators(struct json_out *j, const struct inspect_report *x)
{
	json_open(j, "operators", '[', JSON_INDENTED);
	for (int i = 0; i < x->nop; i++) {
		const struct coverage *c = &x->op[i];

		json_open(j, NULL, '{', JSON_SPACED);
		json_text(j, "op", c->type);
		json_text(j, "domain", c->domain);
		json_int(j, "nodes", c->count);
		json_bool(j, "forward", c->support != MISSING);
		if (c->support == NOT_NEEDED)
			json_text(j, "gradient", NULL);
		else
			json_bool(j, "gradient", c->support == GRADIENT);
		json_close(j);
	}
	json_close(j);
}

static void
put_warnings(struct json_out *j, const struct inspect_report *x)
{
	const char *text;

	json_open(j, "warnings", '[', JSON_INDENTED);
	for (int i = 0; (text = findings_warning(x, i)); i++)
		json_text(j, NULL, text);
	json_close(j);
	json_open(j, "details", '{', JSON_INDENTED);
	for (int i = 0; i < x->lint.n; i++) {
		const struct lint_warning *d = &x->lint.at[i];

		if (!d->ndetail)
			continue;
		json_open(j, d->text, '[', JSON_SPACED);
		for (int k = 0; k < d->ndetail; k++)
			json_text(j, NULL, d->detail[k]);
		json_close(j);
	}
	json_close(j);
}

static void
put_verdict(struct json_out *j, const struct import_options *o)
{
	static const char *const text[] = { "unknown", "accepted", "unbound",
	                                    "refused" };
	const struct step_bytes *b = &o->step;
	bool accepted = o->outcome == OUTCOME_ACCEPTED
		|| o->outcome == OUTCOME_UNBOUND;

	if (b->rule)
		json_text(j, "optimizer", b->rule);
	if (b->rule && b->grad >= 0) {
		json_int(j, "gradient_bytes", b->grad);
		json_int(j, "optimizer_bytes", b->state);
	}
	if (b->all)
		json_int(j, "step_bytes", b->all);
	json_text(j, "verdict", text[o->outcome]);
	if (o->unbound)
		json_text(j, "unbound", o->unbound);
	if (o->refusal)
		json_text(j, "refusal", o->refusal);
	json_bool(j, "trainable", accepted && !o->all_outputs);
}

void
inspect_json(struct inspect_report *x, FILE *out)
{
	const Onnx__ModelProto *m = x->f->file->model;
	struct json_out json = { .f = out }, *j = &json;

	json_open(j, NULL, '{', JSON_LINES);
	json_text(j, "model", x->f->file->path);
	json_int(j, "ir_version", m->ir_version);
	json_int(j, "opset", x->f->opset);
	json_text(j, "producer", m->producer_name ? m->producer_name : "");
	json_open(j, "inputs", '[', JSON_SPACED);
	FOR_VALS (v, x->g)
		if (v->kind == V_INPUT)
			json_text(j, NULL, v->name);
	json_close(j);
	json_open(j, "outputs", '[', JSON_SPACED);
	for (int i = 0; i < x->f->noutput; i++)
		json_text(j, NULL, x->f->val[x->f->output[i]].name);
	json_close(j);
	json_open(j, "dims", '[', JSON_SPACED);
	for (int i = 0; i < x->ndim; i++) {
		json_open(j, NULL, '{', JSON_SPACED);
		json_text(j, "flag", x->dim[i].flag);
		json_text(j, "where", x->dim[i].where);
		json_close(j);
	}
	json_close(j);
	put_initializers(j, x);
	put_operators(j, x);
	put_warnings(j, x);
	json_int(j, "parameter_bytes", x->param_bytes);
	json_int(j, "buffer_bytes", x->buffer_bytes);
	put_verdict(j, x->opt);
	json_close(j);
	putc('\n', out);
}
