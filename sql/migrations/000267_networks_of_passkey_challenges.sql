-- Holds the network of the caller who asked for a passkey challenge. If too many challenges are stored, a new challenge
-- replaces a challenge of the network with the most rows. The empty text means that the network is not known.
alter table passkey_challenges add column network text default '' not null check (length(network) <= 50);
