/** Lists elements without content (HTML Living Standard §13.1.2), and old elements that mail still uses. */
export const VOID_ELEMENTS = new Set(
  'area base br col embed hr img input link meta param source track wbr basefont frame isindex'.split(
    ' ',
  ),
)

/** Lists the HTML elements whose start tag ends an open element of the same name. */
export const SIBLING_ELEMENTS = new Set('p li td th tr dd dt option'.split(' '))
