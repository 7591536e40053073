/* Asks NVIDIA's own cuDNN, on no GPU, how it would carry out the convolutions
 * of a library on an H100: whether it takes what libckr says of them, and finds
 * an engine that suits in the room that is planned.
 *
 *	engines LIBRARY.so      status 77: there is no cuDNN 9.8
 */
#include "runtime/device/convolutions.h"

#include <dlfcn.h>
#include <stdio.h>

static const char h100[] =
	"{\"maxGridSize\":[2147483647,65535,65535],"
	"\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
	"\"multiProcessorCount\":132,\"warpSize\":32,"
	"\"maxSharedMemoryPerBlock\":49152,"
	"\"maxSharedMemoryPerBlockOptin\":232448,"
	"\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,"
	"\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
	"\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,"
	"\"supportCoopLaunch\":1,\"totalGlobalMem\":85520809984,"
	"\"smClockRateKHz\":1980000,\"memClockRateKHz\":2619000,"
	"\"l2CacheSize\":52428800,\"cudaDeviceId\":0,\"deviceVer\":900,"
	"\"driverVer\":13000,\"deviceName\":\"NVIDIA H100 80GB HBM3\"}";

static dnn_descriptor
describe(const struct dnn *dnn)
{
	dnn_descriptor d = NULL;

	return !dnn->make(DNN_DEVICE, &d)
	       && !dnn->set(d, DNN_DEVICE_JSON, DNN_IS_CHAR, sizeof(h100) - 1,
	                    h100) && !dnn->finish(d) ? d : NULL;
}

/* Asked twice, it answers alike. */
static bool
find(const struct dnn *dnn, dnn_descriptor device,
     const struct ckr_convolved *job)
{
	struct engine e, again;
	bool found = engine_find(&e, dnn, NULL, device, job), same;

	same = engine_find(&again, dnn, NULL, device, job) == found
		&& e.work == again.work;
	if (!found || !same)
		printf("kind %d, type %d, %lld x %lld x [%lld, %lld, %lld] to "
		       "%lld, kernel [%lld, %lld, %lld], room %lld: %s\n",
		       job->kind, job->type, (long long)job->images,
		       (long long)(job->group * job->cin),
		       (long long)job->in[0], (long long)job->in[1],
		       (long long)job->in[2],
		       (long long)(job->group * job->cout),
		       (long long)job->kernel[0], (long long)job->kernel[1],
		       (long long)job->kernel[2], (long long)job->workspace,
		       found ? "another answer" : "no engine");
	engine_free(&e, dnn);
	engine_free(&again, dnn);
	return found && same;
}

int
main(int argc, char **argv)
{
	void *so = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	const struct ckr_library *lib = so ? dlsym(so, "ckr_library") : NULL;
	struct dnn dnn;
	dnn_descriptor device;
	uint32_t found = 0;
	char why[128];

	if (!lib) {
		printf("expected a library: %s\n", dlerror());
		return 2;
	}
	device = convolutions_library(&dnn, why, sizeof(why)) ? describe(&dnn)
	       : NULL;
	if (!device) {
		printf("no cuDNN that knows GPUs that are not there\n");
		return 77;
	}
	for (uint32_t i = 0; i < lib->nconvolved; i++)
		found += find(&dnn, device, &lib->convolved[i]);
	printf("%u of %u convolutions\n", found, lib->nconvolved);
	return found < lib->nconvolved || found == 0;
}
