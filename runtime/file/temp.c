/* Nameless temporary files, for data that memory should not hold. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runtime/file/packed.h"

/* Where file systems know no nameless files, one that loses its name. */
static int
open_in(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char path[4096];

	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "%s/ckrun-XXXXXX", folder);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

ckr_status
temp_open(int *fd, uint64_t room, const char *whose, struct err *e)
{
	const char *named = getenv("TMPDIR");
	const char *folder = named && *named ? named : "/tmp";
	struct statvfs fs;
	uint64_t left;

	*fd = open_in(folder);
	if (*fd < 0)
		return err_set(e, CKR_EIO, "%s: cannot create a temporary file "
		               "in '%s': %m; set TMPDIR to another directory",
		               whose, folder);
	if (fstatvfs(*fd, &fs))
		return CKR_OK;
	left = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (room <= left)
		return CKR_OK;
	close(*fd);
	*fd = -1;
	return err_set(e, CKR_EIO, "%s: temporary data in '%s' need %llu "
	               "bytes, but %llu are free; set TMPDIR to another "
	               "directory", whose, folder,
	               (unsigned long long)room, (unsigned long long)left);
}
