declare module 's3rver' {
  type S3Object = { bucket: string; key: string }
  export default class S3rver {
    readonly store: {
      putObject(object: S3Object): Promise<{ size: number }>
      getResourcePath(bucket: string, key: string, resource: 'object'): string
    }
    constructor(options: {
      port: number
      address: string
      silent: boolean
      directory: string
      configureBuckets: { name: string }[]
    })
    run(): Promise<{ port: number }>
    close(): Promise<void>
  }
}
