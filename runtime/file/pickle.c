/* Detection of torch.save files: a zip archive with a pickle in it, or a pickle
 * before PyTorch 1.6.  Unpickling can execute code, so that PyTorch has to do
 * it. */
#include "runtime/file/format.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/support/number.h"

/* Opcode PROTO of a protocol that has it. */
bool
pickle_begins(const unsigned char head[FORMAT_HEAD])
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
	n = got < 30 ? 0 : (size_t)load_le(head + 26, 2);
	*yes = n >= 8 && 30 + n <= got && !memcmp(head + 30 + n - 8,
	                                           "data.pkl", 8);
	return CKR_OK;
}

ckr_status
pickle_refuse(struct array_file *f, struct err *e)
{
	char *to = file_beside(f->path, ".safetensors");

	if (!to)
		return err_no_memory(e);
	err_set(e, CKR_EFORMAT, "%s: expected .safetensors, found a pickle of "
	        "torch.save, which can execute code; to convert it, "
	        "try:\npython3 -c \"import sys, torch, safetensors.torch as "
	        "s; d = torch.load(sys.argv[1], 'cpu', weights_only=True); d = "
	        "d.get('state_dict', d.get('model', d)); s.save_file({k: "
	        "v.contiguous().clone() for k, v in d.items() if "
	        "torch.is_tensor(v)}, sys.argv[2])\" '%s' '%s'", f->path,
	        f->path, to);
	free(to);
	return CKR_EFORMAT;
}
