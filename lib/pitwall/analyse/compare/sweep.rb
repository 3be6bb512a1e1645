# frozen_string_literal: true

module Pitwall
  module Analyse
    # A case measured at several N, and how its time grows with N.
    #
    # name:      of the case without its N ("join")
    # parameter: name of N ("n", "files")
    # fit:       Growth::Fit of the case
    # base:      Growth::Fit of the version that the case is compared with, or nil
    # against:   Growth::Comparison of both, or nil
    # fit_name, base_name: names of the two versions, nil if there is one
    Sweep = Struct.new(:name, :parameter, :fit, :base, :against, :fit_name, :base_name, keyword_init: true)
  end
end
