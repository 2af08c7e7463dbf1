(* The rules of Trace.v in words. *)
open Model

let name = function
  | Clocks_apart -> "the clocks are not within drift" | Nobody -> "there is no such client"
  | Token_over -> "the token was given up" | Ttl_too_long -> "the TTL is longer than max_ttl"
  | Nowhere -> "there is no such node" | Never_sent -> "the command was never sent"
  | Expires_early -> "the key expires too early" | Not_free -> "another token has the key"
  | Not_its_own -> "a renewal sets a key that is not the token's"
  | Life_shortened -> "the key's life is shortened"
  | Reservation_too_long -> "the reservation is longer than max_ttl less drift"
  | No_such_push -> "there was no such push" | Clock_behind -> "the node's clock is later"
  | Not_given_up -> "the key is gone, but its token was not given up"
  | Not_the_tokens -> "the key is not the token's" | No_quorum -> "the grants are no quorum"
  | No_such_grant -> "there was no such grant" | Grant_too_young -> "the node's memory is too young"
  | Grant_too_short -> "the validity is longer than a grant allows"
  | Validity_over -> "the validity is over at its report"
  | Validity_broken -> "the validity had ended before"
