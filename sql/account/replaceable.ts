/**
 * Sets how many rows of a full table one client network must hold, so that a new row replaces a row of this network.
 */
const CROWD_MIN = 10
/**
 * Sets the minimum age of a row that a new row may replace while no client network holds many rows of the table. An app
 * needs only a few minutes to connect, so an older row is no longer in use.
 */
const IDLE_AFTER = '1 hour'

/**
 * Returns an SQL query for the id of the row that a new row of a full table replaces. Anybody can fill the tables of
 * OAuth clients, of requests for consent, of company sign-ins and of passkey challenges. The query chooses a row of the
 * network with the most rows. Therefore an attacker who fills a table replaces only their own rows. If several new rows
 * arrive at once, each of them replaces a different row.
 * @param of.id is the column that identifies a row.
 * @param of.since is the column with the time of a row.
 * @param of.where selects the rows that anybody can create.
 * @param of.over selects the rows that nobody needs any more. They are replaced first. By default there are none.
 * @param of.idle selects the rows that may be replaced although no network has many rows. By default these are the rows
 * older than IDLE_AFTER.
 */
export const replaceable = (
  table: string,
  {
    id = 'id',
    over = 'false',
    since,
    idle = `${since} < clock_timestamp() - interval '${IDLE_AFTER}'`,
    where,
  }: { since: string; where: string; id?: string; over?: string; idle?: string },
): string => `
  select ${id} from ${table},
    lateral (select network = (
      select network from ${table} where ${where}
      group by network having count(*) >= ${CROWD_MIN} order by count(*) desc, network limit 1
    ), ${over}) yielding (is_largest, is_over)
  where (${where}) and (is_over or is_largest or ${idle})
  order by is_over desc, is_largest desc nulls last, ${since} limit 1
  for update of ${table} skip locked`
