/* Trains the character model of samples/chargpt on a text, through ckr.h:
 * train MODEL.so TEXT STEPS */
#include <ckr.h>
#include <stdio.h>
#include <stdlib.h>

int
main(int argc, char **argv)
{
	static unsigned char text[1 << 20];
	struct ckr_hyper hyper = ckr_hyper_default();
	struct ckr_info shape;
	void *ids, *labels;
	double loss;
	ckr_ctx *m;
	FILE *f = argc == 4 ? fopen(argv[2], "rb") : NULL;
	size_t n = f ? fread(text, 1, sizeof(text), f) : 0;

	if (n < 4096) {
		fputs("usage: train MODEL.so TEXT STEPS\n", stderr);
		return 2;
	}
	if (ckr_open(&m, argv[1], NULL)
	    || ckr_find(m, "tokens", &shape) || ckr_input(m, "tokens", &ids)
	    || ckr_input(m, "labels", &labels))
		goto fail;
	hyper.lr = 3e-3;
	for (int step = 0; step < atoi(argv[3]); step++) {
		for (int64_t row = 0; row < shape.dim[0]; row++) {
			size_t at = (size_t)rand() % (n - (size_t)shape.dim[1]);

			for (int64_t i = 0; i < shape.dim[1]; i++, at++) {
				int64_t k = row * shape.dim[1] + i;

				((int64_t *)ids)[k] = text[at];
				((int64_t *)labels)[k] = text[at + 1];
			}
		}
		if (ckr_step(m, &hyper, &loss))
			goto fail;
		printf("step %d  loss %.9g\n", step + 1, loss);
	}
	if (ckr_save(m, "trained.safetensors"))
		goto fail;
	ckr_close(m);
	return 0;
fail:
	fprintf(stderr, "%s\n", ckr_error(m));
	return 1;
}
