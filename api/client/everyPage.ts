/**
 * Reads a list to its end, page by page, as it is asked for.
 * @param read reads the page of a token; the first without one.
 */
export async function* everyPage<Page extends { nextPageToken?: string }, Item>(
  read: (pageToken: string | undefined) => Promise<Page>,
  items: (page: Page) => readonly Item[],
  pageToken?: string,
): AsyncGenerator<Item, void, undefined> {
  let token = pageToken
  do {
    const page = await read(token)
    yield* items(page)
    token = page.nextPageToken
  } while (token !== undefined)
}
