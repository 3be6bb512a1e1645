# frozen_string_literal: true

# `require "pitwall/fastboot"` in config/boot.rb, or RUBYOPT=-rpitwall/fastboot (doc/fastboot.md). It starts with its
# defaults. For options: require "pitwall/fastboot/setup", and call Pitwall::Fastboot.setup.
require_relative "fastboot/setup"

Pitwall::Fastboot.setup
