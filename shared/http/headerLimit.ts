/**
 * Limits the bytes of the headers of each HTTP request that this process receives. Bun's default is 16 KB. Bun has one
 * limit for all HTTP servers of a process, and takes it from node:http.
 */
export function limitHeaders(bytes: number): void {
  Object.assign(process.getBuiltinModule('node:http'), { maxHeaderSize: bytes })
}
