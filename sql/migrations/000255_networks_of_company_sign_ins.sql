-- Holds the network of the caller who began a sign-in. If too many sign-ins are stored, a new sign-in replaces a
-- sign-in of the network with the most rows. The empty text means that the network is not known.
alter table company_sign_ins add column network text default '' not null check (length(network) <= 50);
