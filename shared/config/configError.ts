/** A setting that cannot be used. `message` is one line: the variable, then the rule for its value. */
export class ConfigError extends Error {}
