/* Detection of torch.save files: a zip archive with a pickle in it, or a pickle
 * before PyTorch 1.6.  Unpickling can execute code, so that PyTorch has to do
 * it. */
#include "runtime/file/array.h"

#include <stdio.h>
#include <string.h>

/* Opcode PROTO of a protocol that has it. */
bool
pickle_begins(const unsigned char head[2])
{
	return head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
}

/* The archive's first member is FOLDER/data.pkl; a local header has the
 * length of its name at 26 and the name at 30. */
ckr_status
pickle_is_in_zip(const struct array_file *f, bool *yes, struct err *e)
{
	unsigned char head[30 + 256];
	size_t got, n;

	CKR_TRY(file_some(f->fd, f->path, head, sizeof(head), 0, &got, e));
	n = got < 30 ? 0 : (size_t)head[26] | (size_t)head[27] << 8;
	*yes = n >= 8 && 30 + n <= got && !memcmp(head + 30 + n - 8,
	                                           "data.pkl", 8);
	return CKR_OK;
}

ckr_status
pickle_refuse(struct array_file *f, struct err *e)
{
	const char *slash = strrchr(f->path, '/');
	const char *dot = strrchr(slash ? slash : f->path, '.');
	int stem = dot && dot != f->path ? (int)(dot - f->path)
	           : (int)strlen(f->path);

	return err_set(e, CKR_EFORMAT, "%s: expected .safetensors, found a "
	               "pickle of torch.save, which can execute code; to "
	               "convert it, try:\npython3 -c \"import sys, torch, "
	               "safetensors.torch as s; d = torch.load(sys.argv[1], "
	               "'cpu', weights_only=True); d = d.get('state_dict', "
	               "d.get('model', d)); s.save_file({k: "
	               "v.contiguous().clone() for k, v in d.items() if "
	               "torch.is_tensor(v)}, sys.argv[2])\" '%s' "
	               "'%.*s.safetensors'", f->path, f->path, stem,
	               f->path);
}
