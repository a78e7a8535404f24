/* bcryptprimitives.dll, which Go's runtime loads for its random numbers. Wine has it from 9.0 on. */
#include <windows.h>
__declspec(dllimport) BOOLEAN WINAPI SystemFunction036(void *, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *out, SIZE_T size) { return SystemFunction036(out, size); }
BOOL WINAPI DllMain(HINSTANCE dll, DWORD why, void *reserved) { return TRUE; }
