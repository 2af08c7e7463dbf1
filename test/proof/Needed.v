(*
 * Each rule is needed: without it, here is a run that breaks the theorem. Three nodes, two clients;
 * clocks may differ by a tenth; a grain of 2; max_ttl is 100. So a TTL of 100 gives a validity of 88.
 *)
Require Import ZArith List Bool Lia.
Require Import Model Invariant Exclusion Majorities Reports.
Import ListNotations.
Open Scope Z_scope.

Definition run3 R := run R [0;1;2]%nat [0;1]%nat (of_lists (fun _ => [[0;1;2]%nat])) 9 10 2 100.
Definition s0 := State (fun _ => 0) (fun _ => 0) (fun _ => None) (fun _ => 0%nat) (fun _ _ _ => -100)
  [] [] [] [] [].
Definition breaks R := exists xs s t t', run3 R s0 xs = Some s /\ valid s t 0%nat /\ valid s t' 0%nat /\ t <> t'.

Definition A : token := (0, 0)%nat.
Definition B : token := (1, 0)%nat.
Definition is_valid s t m :=
  existsb (fun p => token_eqb (fst p) t && Nat.eqb (fst (snd p)) m && (cclock s (owner t) <? snd (snd p))) (held s).
Definition both o := match o with Some s => is_valid s A 0 && is_valid s B 0 | None => false end.

Lemma is_valid_valid s t m : is_valid s t m = true -> valid s t m.
Proof.
  unfold is_valid, valid; rewrite existsb_exists; intros ([u [k e]] & I & E); cbn -[token_eqb Nat.eqb] in E.
  conds. match goal with H : Nat.eqb _ _ = true |- _ => apply Nat.eqb_eq in H end; subst; eauto.
Qed.
Lemma both_breaks R xs : both (run3 R s0 xs) = true -> breaks R.
Proof.
  destruct (run3 R s0 xs) as [s|] eqn:E; [|discriminate].
  intros H; apply andb_true_iff in H as [H H']; exists xs, s, A, B; repeat split; auto using is_valid_valid; discriminate.
Qed.

Definition all_tick d := Tick (fun _ => d) (fun _ => d).
Definition take t d a := Round t Take a d.
Definition g t k a d n := Grant t n 0 (Asked k a d). (* granted by the first memory of node n *)
Definition yes t k a d ns z := Hold t 0 (map (g t k a d) ns) z.
(* A takes two nodes, and holds. *)
Definition A_holds : list action := [Send A Take 100; Exec (take A 100 0) 0 98; Exec (take A 100 0) 1 98; yes A Take 0 100 [0;1]%nat 88].
Ltac by_run run := apply (both_breaks _ run); vm_compute; reflexivity.

(* The release of another try of B deletes A's key. *)
Theorem without_comparing : breaks (Rules false true true true true true true true true true true).
Proof. by_run (A_holds ++ [End (1, 1)%nat; Delete (1, 1)%nat 1; Send B Take 100; Exec (take B 100 0) 1 98;
  Exec (take B 100 0) 2 98; yes B Take 0 100 [1;2]%nat 88]). Qed.

(* Validity that counts from the answers. *)
Theorem without_early_start : breaks (Rules true false true true true true true true true true true).
Proof. by_run [Send A Take 100; Exec (take A 100 0) 0 98; Exec (take A 100 0) 1 98; all_tick 80;
  yes A Take 0 100 [0;1]%nat 168; all_tick 30; Send B Take 100; Exec (take B 100 110) 1 210;
  Exec (take B 100 110) 2 210; yes B Take 110 100 [1;2]%nat 198]. Qed.

(* The late release of a first try deletes the key of a second one with the same token. *)
Theorem without_fresh_tokens : breaks (Rules true true false true true true true true true true true).
Proof. by_run ([Send A Take 100; End A] ++ A_holds ++ [Delete A 1; Send B Take 100; Exec (take B 100 0) 1 98;
  Exec (take B 100 0) 2 98; yes B Take 0 100 [1;2]%nat 88]). Qed.

(* Nodes' clocks that are fast, within the drift. *)
Theorem without_drift : breaks (Rules true true true false true true true true true true true).
Proof. by_run [Send A Take 90; Exec (take A 90 0) 0 88; Exec (take A 90 0) 1 88; yes A Take 0 90 [0;1]%nat 90;
  Tick (fun _ => 88) (fun _ => 80); Send B Take 90; Exec (take B 90 80) 1 176; Exec (take B 90 80) 2 176;
  yes B Take 80 90 [1;2]%nat 170]. Qed.

(* A clock that jumps: all nodes' keys expire early. *)
Theorem without_clocks_in_step : breaks (Rules true true true true true true true true true true false).
Proof. by_run (A_holds ++ [Tick (fun _ => 100) (fun _ => 0); Send B Take 100; Exec (take B 100 0) 1 198;
  Exec (take B 100 0) 2 198; yes B Take 0 100 [1;2]%nat 88]). Qed.

(* Node 0 loses A's key, and its grant counts at once. *)
Theorem without_ages : breaks (Rules true true true true true true false true true true true).
Proof. by_run (A_holds ++ [Forget 0; Send B Take 100; Exec (take B 100 0) 0 98; Exec (take B 100 0) 2 98;
  Hold B 0 [Grant B 0 1 (Asked Take 0 100); g B Take 0 100 2%nat] 88]). Qed.

(*
 * A node with a young memory grants nothing, but its renewals count. Node 2 grants A, and forgets; B
 * holds at 0 and 1, and renews at 0 and the young 2; its key at 1 expires, and A's late SET gets 1.
 *)
Theorem with_renewals_of_young_nodes : breaks (Rules true true true true true true true false true true true).
Proof. by_run [Send A Take 100; Exec (take A 100 0) 2 98; Forget 2;
  Send B Take 30; Exec (take B 30 0) 0 28; Exec (take B 30 0) 1 28; Exec (take B 30 0) 2 28;
  yes B Take 0 30 [0;1]%nat 25; all_tick 10; Send B Renew 30; Exec (Round B Renew 10 30) 0 38;
  Exec (Round B Renew 10 30) 2 38; Hold B 0 [g B Renew 10 30 0%nat; Grant B 2 1 (Asked Renew 10 30)] 35;
  all_tick 20; Exec (take A 100 0) 1 128; yes A Take 0 100 [1;2]%nat 88]. Qed.

(* A push that is converted with an old reading of the node's clock. *)
Theorem without_upper_bound : breaks (Rules true true true true true true true true false true true).
Proof. by_run [Pass A 0 50; Pass A 1 50; all_tick 40; Read (Grant A 0 0 (Pushed 50)) 0; Read (Grant A 1 0 (Pushed 50)) 0;
  yes A Take 40 50 [0;1]%nat 83; all_tick 11; Send B Take 100; Exec (take B 100 51) 0 149;
  Exec (take B 100 51) 1 149; yes B Take 51 100 [0;1]%nat 139]. Qed.

(*
 * A reservation of max_ttl, at nodes with slow clocks. A is pushed the keys of 0 and 1; 0
 * forgets, and grants B after max_ttl of B's clock; only then A reads the pushes.
 *)
Theorem without_short_reservations : breaks (Rules true true true true true true true true true false true).
Proof. by_run [Pass A 0 100; Pass A 1 100; Forget 0; Tick (fun _ => 90) (fun _ => 100);
  Send B Take 100; Exec (take B 100 100) 0 188; Exec (take B 100 100) 2 188;
  Hold B 0 [Grant B 0 1 (Asked Take 100 100); g B Take 100 100 2%nat] 188;
  Read (Grant A 0 0 (Pushed 100)) 90; Read (Grant A 1 0 (Pushed 100)) 90; yes A Take 100 10 [0;1]%nat 107]. Qed.

(* Without a look at the clock, a yes is reported although the validity is over. *)
Theorem without_looks : exists xs s,
  run3 (Rules true true true true false true true true true true true) s0 xs = Some s /\
  reported s = [(A, (0%nat, 100))] /\ cclock s 0%nat = 100 /\ held s = [(A, (0%nat, 88))].
Proof.
  exists [Send A Take 100; Exec (take A 100 0) 0 98; Exec (take A 100 0) 1 98; all_tick 100; yes A Take 0 100 [0;1]%nat 88].
  eexists; split; [vm_compute; reflexivity|]. repeat split. Qed.

(* If a late renewal counts, a validity that has ended begins again, for the same lock. *)
Theorem without_unbroken : exists xs ys s1 s2 s3, let R := Rules true true true true true false true true true true true in
  run3 R s0 A_holds = Some s1 /\ run3 R s1 xs = Some s2 /\ run3 R s2 ys = Some s3 /\ ~ In (Part A) (xs ++ ys) /\
  holds s1 A /\ ~ holds s2 A /\ holds s3 A.
Proof.
  exists [all_tick 90], [Send A Renew 100; Exec (Round A Renew 90 100) 0 188; Exec (Round A Renew 90 100) 1 188;
    yes A Renew 90 100 [0;1]%nat 178].
  eexists; eexists; eexists; do 3 (split; [vm_compute; reflexivity|]). repeat split.
  - intros H; repeat destruct H as [H | H]; easy.
  - exists 0%nat, 88; split; [left; reflexivity | cbn; lia].
  - intros (m & z & [E | []] & L); injection E as <- <-; now cbn in L.
  - exists 0%nat, 178; split; [left; reflexivity | cbn; lia].
Qed.

(* Two clients that are two stages of a change apart do not exclude each other. *)
Definition two_lists k : list node := match k with O => [0;1;2]%nat | _ => [3;4;5]%nat end.
Theorem two_stages_apart : exists xs s,
  run strict [0;1;2;3;4;5]%nat [0;1]%nat (of_lists (by_stage two_lists)) 9 10 2 100 s0 xs = Some s /\
  valid s A 0%nat /\ valid s B 2%nat.
Proof.
  exists (A_holds ++ [Send B Take 100; Exec (take B 100 0) 3 98; Exec (take B 100 0) 4 98;
    Hold B 2 (map (g B Take 0 100) [3;4]%nat) 88]).
  eexists; split; [vm_compute; reflexivity|]. split; apply is_valid_valid; vm_compute; reflexivity.
Qed.

(* Quorums that are no majorities do not exclude each other. *)
Theorem without_majorities : exists xs s,
  run strict [0;1;2]%nat [0;1]%nat (fun _ q => Nat.leb 1 (length q)) 9 10 2 100 s0 xs = Some s /\
  valid s A 0%nat /\ valid s B 0%nat.
Proof.
  exists [Send A Take 100; Exec (take A 100 0) 0 98; yes A Take 0 100 [0]%nat 88;
    Send B Take 100; Exec (take B 100 0) 1 98; yes B Take 0 100 [1]%nat 88].
  eexists; split; [vm_compute; reflexivity|]. split; apply is_valid_valid; vm_compute; reflexivity.
Qed.

(* A token can be held, and also by pushes. *)
Theorem can_hold : exists xs s, run3 strict s0 xs = Some s /\ valid s A 0%nat.
Proof. exists A_holds; eexists; split; [vm_compute; reflexivity|]. apply is_valid_valid; vm_compute; reflexivity. Qed.

Theorem can_hold_by_pushes : exists xs s, run3 strict s0 xs = Some s /\ valid s A 0%nat /\ sent s = [].
Proof.
  exists [Pass A 0 50; Pass A 1 50; all_tick 10; Read (Grant A 0 0 (Pushed 50)) 11; Read (Grant A 1 0 (Pushed 50)) 12;
    Hold A 0 [Grant A 0 0 (Asked Take 10 39); Grant A 1 0 (Asked Take 10 38)] 41].
  eexists; split; [vm_compute; reflexivity|]. split; [apply is_valid_valid; vm_compute|]; reflexivity.
Qed.
