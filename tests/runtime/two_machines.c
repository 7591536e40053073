/* Preloaded: processes of even and of odd numbers seem to be on two machines,
 * as srun --distribution=cyclic starts them.  The number is that of the
 * launcher.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

int
uname(struct utsname *u)
{
	const char *rank = getenv("RANK");
	long s = syscall(SYS_uname, u);

	if (s == 0 && rank)
		snprintf(u->nodename, sizeof(u->nodename), "machine%d",
		         atoi(rank) % 2);
	return (int)s;
}

#ifdef HAVE_MPI
#include <mpi.h>

int
MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info,
                    MPI_Comm *to)
{
	int rank;

	(void)info;
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	return type == MPI_COMM_TYPE_SHARED
		? PMPI_Comm_split(comm, rank % 2, key, to) : MPI_ERR_ARG;
}
#endif
