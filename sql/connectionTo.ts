import pg from 'pg'

/**
 * Returns the settings of a database connection, including a name of this service. The function removes
 * `application_name` and `options` from the URL, because the database driver would prefer them to the caller's values.
 * The connection's name would then not show whether a worker pool is alive, and no statement would have a time limit.
 * Other options of the URL stay, such as a search path.
 * @param settings holds PostgreSQL options that the service sets, such as `-c statement_timeout=1000`. They take
 * precedence over the options in the database URL.
 */
export function connectionTo(databaseUrl: string, name: string, settings = '') {
  const url = new URL(databaseUrl)
  const given = url.searchParams.get('options')
  const options = [given, settings].filter((part) => part !== null && part !== '').join(' ')
  const isPlain = given === null && !url.searchParams.has('application_name')
  url.searchParams.delete('application_name')
  url.searchParams.delete('options')
  return {
    connectionString: isPlain ? databaseUrl : url.href,
    application_name: name,
    ...(options === '' ? {} : { options }),
  }
}

/**
 * Creates a database connection for one caller. If the connection breaks, the next statement of the caller rejects. A
 * listener for errors prevents the break of an idle connection from ending the whole process.
 */
export function singleConnection(settings: pg.ClientConfig): pg.Client {
  const client = new pg.Client(settings)
  client.on('error', () => {})
  return client
}
